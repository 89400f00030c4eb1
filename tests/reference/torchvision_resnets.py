# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""What torchvision's ResNets compute with the weights of tests/support/torch_files.py: resnet18, 34 and 50 with an eighth of the channels.

python torchvision_resnets.py FILE writes {depth: outputs}; tests/e2e/import_test.py compares those of imported weights with the file next to this
script. load_state_dict is strict, so it also shows that resnet_shapes() has torchvision's names and shapes."""
import json
import pathlib
import struct
import sys

import torch
from torchvision.models import resnet

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import torch_files  # noqa: E402

WIDTH, CLASSES = torch_files.RESNET_WIDTH, torch_files.RESNET_CLASSES


class Narrow(resnet.ResNet):
    """torchvision's net, with WIDTH channels where it has 64."""

    def __init__(self, block, layers):
        super().__init__(block, layers)
        self.conv1 = torch.nn.Conv2d(3, WIDTH, 7, 2, 3, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(WIDTH)
        self.fc = torch.nn.Linear(8 * WIDTH * block.expansion, CLASSES)

    def _make_layer(self, block, planes, *rest, **options):
        if planes == 64:
            self.inplanes = WIDTH
        return super()._make_layer(block, planes * WIDTH // 64, *rest, **options)


outputs = {}
for depth, block, layers in ((18, resnet.BasicBlock, [2, 2, 2, 2]), (34, resnet.BasicBlock, [3, 4, 6, 3]), (50, resnet.Bottleneck, [3, 4, 6, 3])):
    shapes = torch_files.resnet_shapes(depth, WIDTH, CLASSES)
    _, storages = torch_files.state_of(shapes)
    state = {}
    for key, (name, shape) in enumerate(shapes.items()):
        data = storages[str(key)]
        whole = name.endswith("num_batches_tracked")
        values = struct.unpack("<q" if whole else f"<{len(data) // 4}f", data)
        state[name] = torch.tensor(values, dtype=torch.int64 if whole else torch.float32).reshape(shape)
    net = Narrow(block, layers)
    net.load_state_dict(state, strict=True)
    shape, values = torch_files.samples()
    with torch.no_grad():
        outputs[depth] = net.eval()(torch.tensor(values).reshape(shape).permute(0, 3, 1, 2)).tolist()
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(outputs, file, indent=1)
    file.write("\n")
