# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A small ResNet of PyTorch with random weights and statistics: its state dict, samples (channels last), and its outputs for them.

python resnet.py FOLDER [SEED] writes resnet.pt, resnet.onnx, resnet_x.npy and resnet_y.npy; tests/e2e/state_dict_test.py imports them. Those next to
this script are of the seed 3."""
import pathlib
import sys

import numpy as np
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out)) if stride > 1 else None

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8)
        self.layer1, self.layer2, self.fc = nn.Sequential(Block(8, 8, 1)), nn.Sequential(Block(8, 16, 2)), nn.Linear(16, 5)

    def forward(self, x):
        x = self.layer2(self.layer1(torch.relu(self.bn1(self.conv1(x)))))
        return self.fc(x.mean(dim=(2, 3)))


folder = pathlib.Path(sys.argv[1])
seed = int(sys.argv[2]) if len(sys.argv) > 2 else 3
torch.manual_seed(seed)
net = ResNet().eval()
for module in net.modules():
    if isinstance(module, nn.BatchNorm2d):
        for values, low in ((module.weight, 0.5), (module.bias, -0.5), (module.running_mean, -0.5), (module.running_var, 0.5)):
            values.data.uniform_(low, low + 1)
torch.save(net.state_dict(), folder / "resnet.pt")
x = np.random.default_rng(seed).standard_normal((14, 9, 9, 3), dtype=np.float32)
samples = torch.from_numpy(x.transpose(0, 3, 1, 2).copy())
np.save(folder / "resnet_x.npy", x)
np.save(folder / "resnet_y.npy", net(samples).detach().numpy())
torch.onnx.export(net, (samples,), folder / "resnet.onnx", dynamo=False)  # batch norms are folded into the convolutions
