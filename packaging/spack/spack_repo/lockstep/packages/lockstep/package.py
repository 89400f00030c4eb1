# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Lockstep(CMakePackage, CudaPackage):
    """MPI data-parallel neural-network trainer: the same bits on any number of ranks."""

    license("Apache-2.0")

    # The source beside this file: spack develop --path SOURCE lockstep@0.1.0. For a release, give its archive and checksum.
    version("0.1.0")

    variant("bench", default=False, description="Build the benchmarks")

    # Upper limits are those of the versions that Lockstep is built with in Debian 12 and Ubuntu 24.04, or of the next ones.
    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi")  # Open MPI, and the communication of MPICH, are tested
    depends_on("hdf5@1.10:1.14")
    depends_on("onednn@2.5:")
    depends_on("eigen@3.4", type="build")
    depends_on("yaml-cpp@0.7:0.8")
    depends_on("cli11@2.1:2.5", type="build")
    depends_on("fmt@8:10")
    depends_on("spdlog@1.9:1.14")
    depends_on("protobuf@3.12:21")  # later ones need Abseil, which CMake's own FindProtobuf does not link
    depends_on("nlohmann-json@3.9:3.11", type="build")
    depends_on("xxhash@0.8:", type="build")
    depends_on("zlib-api")
    depends_on("libdeflate")
    depends_on("libjpeg-turbo")
    depends_on("libpng")
    depends_on("benchmark", type="build", when="+bench")
    depends_on("cuda@12:", when="+cuda")
    depends_on("cudnn@9:", when="+cuda")
    depends_on("nccl", when="+cuda")

    conflicts("%gcc@:10", msg="Lockstep is C++20 and needs GCC 11 or later")
    conflicts("cuda_arch=none", when="+cuda", msg="Name the GPUs, as cuda_arch=90")

    generator("ninja")

    def cmake_args(self):
        arguments = [
            self.define_from_variant("LOCKSTEP_CUDA", "cuda"),
            self.define_from_variant("LOCKSTEP_BENCH", "bench"),
            self.define("LOCKSTEP_TESTS", False),
            self.define("LOCKSTEP_WERROR", False),
            self.define("LOCKSTEP_PCH", True),
        ]
        if self.spec.satisfies("+cuda"):
            roots = [self.spec[name].prefix for name in ("cuda", "cudnn", "nccl")]
            architectures = [f"{arch}-real" for arch in self.spec.variants["cuda_arch"].value]
            arguments.append(self.define("LOCKSTEP_CUDA_ROOTS", roots))
            arguments.append(self.define("CMAKE_CUDA_ARCHITECTURES", architectures))
        return arguments

    def setup_run_environment(self, env):
        env.set("LOCKSTEP_SLURM", self.prefix.share.lockstep.slurm)

    def test_digits(self):
        """trains an example for a few steps"""
        lockstep = which(self.prefix.bin.lockstep)
        lockstep("train", self.prefix.share.lockstep.examples.join("digits.yaml"), "--run-dir", "digits", "--steps", "5", "--threads", "1")
        lockstep("inspect", "digits", "--digest")
