# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A small resnet18 of PyTorch that knows digits, and what PyTorch reaches when it fine-tunes it as images_test.py does.

python fine_tuned.py pretrain      writes digits_resnet18.safetensors next to this script: torchvision's names, WIDTH channels where it has 64, float16
python fine_tuned.py fine_tune     writes fine_tuned.json: accuracy and loss for several seeds of the new layer and of the order of the pictures

Both files are from PyTorch 1.13.1 (on a CPU) and NumPy 1.26.4."""
import json
import pathlib
import struct
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent))
import digit_pictures as pictures  # noqa: E402

WIDTH, CLASSES, SEEDS = 4, 10, 8
PRETRAINING = range(600, 1500)  # digits in grey, with the labels 0 to 9
PRETRAINED = {"epochs": 20, "rate": 0.005, "batch": 32}
HEAD = {"epochs": 15, "rate": 0.01, "batch": 16}
ALL = {"epochs": 5, "rate": 0.001, "batch": 16}
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out)) if stride > 1 else None

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    """torchvision's resnet18 with other numbers of channels; load_state_dict is strict."""

    def __init__(self, width, classes):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        channels = width
        for stage in range(4):
            out = width * 2**stage
            setattr(self, f"layer{stage + 1}", nn.Sequential(Block(channels, out, 1 if stage == 0 else 2), Block(out, out, 1)))
            channels = out
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.fc(self.layer4(self.layer3(self.layer2(self.layer1(x)))).mean(dim=(2, 3)))


def samples(numbers, colours=True):
    """Pictures and their labels: the digits in grey, the places of their names among all sorted ones in colours."""
    images, labels, names = [], [], sorted(pictures.NAMES)
    for number, values, label in pictures.digits(numbers):
        rows = b"".join(pictures.picture(number, values, colours))
        images.append(np.frombuffer(rows, np.uint8).reshape(pictures.EXTENT, pictures.EXTENT, 3))
        labels.append(names.index(pictures.NAMES[label]) if colours else label)
    x = (np.stack(images).astype(np.float32) / 255 - np.float32(MEAN)) / np.float32(STD)
    return torch.from_numpy(x.transpose(0, 3, 1, 2).copy()), torch.tensor(labels)


def write_safetensors(path, state):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in state.items():
        tensor = tensor if name.endswith("num_batches_tracked") else tensor.half()
        values = tensor.numpy().tobytes()
        header[name] = {"dtype": "I64" if tensor.dtype == torch.int64 else "F16", "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    contents = path.read_bytes()
    begin = 8 + struct.unpack("<Q", contents[:8])[0]
    state = {}
    for name, tensor in json.loads(contents[8:begin]).items():
        if name != "__metadata__":
            first, last = tensor["data_offsets"]
            kind = np.int64 if tensor["dtype"] == "I64" else np.float16
            values = np.frombuffer(contents[begin + first:begin + last], kind).reshape(tensor["shape"])
            state[name] = torch.from_numpy(values.astype(np.int64 if kind is np.int64 else np.float32))
    return state


def train(net, parameters, data, epochs, rate, batch, training=True):
    x, y = data
    optimizer = torch.optim.Adam(parameters, lr=rate)
    net.train(training)  # frozen batch norms use the imported statistics
    for _ in range(epochs):
        for part in torch.randperm(len(x)).split(batch):
            optimizer.zero_grad()
            F.cross_entropy(net(x[part]), y[part]).backward()
            optimizer.step()


def judge(net, data):
    x, y = data
    with torch.no_grad():
        logits = net.eval()(x)
    return {"accuracy": round(float((logits.argmax(1) == y).float().mean()), 6), "loss": round(float(F.cross_entropy(logits, y)), 6)}


def pretrain():
    torch.manual_seed(1)
    net = ResNet18(WIDTH, CLASSES)
    train(net, net.parameters(), samples(PRETRAINING, colours=False), **PRETRAINED)
    print(judge(net, samples(pictures.TEST, colours=False)))
    write_safetensors(here / "digits_resnet18.safetensors", net.state_dict())


def fine_tune():
    training, test = samples(pictures.TRAINING), samples(pictures.TEST)
    results = {"torch": torch.__version__, "head": [], "all": [], "without_pretraining": []}
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        net = ResNet18(WIDTH, CLASSES)
        net.load_state_dict(read_safetensors(here / "digits_resnet18.safetensors"), strict=True)
        net.fc = nn.Linear(8 * WIDTH, CLASSES)
        train(net, net.fc.parameters(), training, **HEAD, training=False)
        results["head"].append(judge(net, test))
        train(net, net.parameters(), training, **ALL)
        results["all"].append(judge(net, test))
        net = ResNet18(WIDTH, CLASSES)
        train(net, net.parameters(), training, HEAD["epochs"] + ALL["epochs"], ALL["rate"], ALL["batch"])
        results["without_pretraining"].append(judge(net, test))
    (here / "fine_tuned.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


torch.set_num_threads(1)
{"pretrain": pretrain, "fine_tune": fine_tune}[sys.argv[1]]()
