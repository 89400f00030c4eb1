# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Random configurations, as trees of dicts, lists and scalars, and ways to break them.

A net is generated layer by layer with the shape that each layer makes, so that most of what is generated is valid.
"""
import copy
import json

INITIALIZERS = ["zeros", "ones", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal",
                {"normal": {"stddev": 0.1}}, {"uniform": {"low": -0.1, "high": 0.1}}, {"constant": {"value": 0.01}}]
ACTIVATIONS = ["relu", "relu6", "elu", "selu", "gelu", "silu", "tanh", "sigmoid", "softplus", "leaky_relu"]
OPTIMIZERS = [{"gradient_descent": {"learning_rate": 0.05}}, {"momentum": {"learning_rate": 0.01}},
              {"momentum": {"learning_rate": 0.01, "nesterov": True}}, "adam", {"adam": {"beta1": 0.8}},
              "adamw", {"adamw": {"weight_decay": 0.1}}, "nadam", "radam", {"ftrl": {"learning_rate": 0.1, "l1": 0.01}}, "lion",
              {"rmsprop": {"learning_rate": 0.01, "momentum": 0.5}}, {"adagrad": {"learning_rate": 0.1}},
              {"adam": {"learning_rate": {"exponential_decay": {"initial": 0.01, "decay_steps": 2, "decay_rate": 0.5}}}},
              {"adam": {"learning_rate": {"cosine_decay": {"initial": 0.01, "decay_steps": 2, "unit": "epochs",
                                                           "warmup": {"linear": {"steps": 2, "unit": "steps"}}}}}},
              {"momentum": {"learning_rate": {"one_cycle": {"peak": 0.02, "total_steps": 9}},
                            "momentum": {"noisy_linear_cosine_decay": {"initial": 0.5, "decay_steps": 5,
                                                                       "initial_variance": 0.1}}}}]
NASTY = [None, "", "x", "null", True, -1, 0, 1, 2, 3, 0.5, -0.5, 1e-30, 1e30, "1e999", [], {}, [1], [0, 0], [[1]], {"a": 1},
         "yes", "relu", "a b", "../..", "\u00e9", "a\nb", "0x1F", "1_000", ".nan", ".inf", 7, 48, 49, 65536, [1, 2, 3, 4, 5],
         {"adam": {}}, "*", "re:(", "re:" + "(" * 600, "/dev/zero", "a" * 300]
HUGE = [2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 53, 2 ** 61, 2 ** 63 - 1, -2 ** 63, 2 ** 64, 1e308, -1e308, 10 ** 7, [2 ** 61, 2 ** 61]]
UNKNOWN = ["lr", "activation", "kernel_size", "weight_decay", "foo", "", "name", "inputs", "steps", "units", "rate", "<<", "1"]


def spatial_layers(random, shape):
    """Some layers for height x width x channels; returns (layers, shape)."""
    layers = []
    for _ in range(random.randrange(4)):
        height, width, channels = shape
        kind = random.choice(["conv2d", "conv2d", "max_pool", "avg_pool", "batch_norm", "group_norm", "instance_norm",
                              "activation", "dropout", "spatial_dropout", "drop_path", "pad", "upsample", "layer_norm",
                              "rms_norm", "residual"])
        if kind == "conv2d":
            filters = random.choice([1, 2, 4, 5])
            options = {"filters": filters, "kernel": random.choice([1, 2, 3, [3, 1]])}
            if random.random() < 0.5:
                options["kernel_initializer"] = random.choice(INITIALIZERS)
            if random.random() < 0.3:
                options["bias"] = False
            if random.random() < 0.2:
                options["dilation"] = 2
            layers.append({"conv2d": options})
            shape = (height, width, filters)
        elif kind in ("max_pool", "avg_pool") and height >= 2 and width >= 2:
            layers.append(random.choice([kind, {kind: {"window": 2}}, {kind: {"window": 2, "stride": 2}}]))
            shape = (height // 2, width // 2, channels)
        elif kind == "batch_norm":
            layers.append(random.choice([kind, {kind: {"momentum": 0.9}}, {kind: {"group": random.choice([0, 1, 2, 3])}}]))
        elif kind == "group_norm":
            layers.append({kind: {"groups": random.choice([1, channels])}})
        elif kind in ("instance_norm", "layer_norm", "rms_norm"):
            layers.append(kind)
        elif kind in ("dropout", "spatial_dropout", "drop_path"):
            layers.append({kind: {"rate": random.choice([0, 0.25, 0.9])}})
        elif kind == "pad":
            layers.append({kind: {"padding": 1}})
            shape = (height + 2, width + 2, channels)
        elif kind == "upsample" and height * width < 100:
            layers.append({kind: {"factor": 2, "method": random.choice(["nearest", "bilinear"])}})
            shape = (2 * height, 2 * width, channels)
        elif kind == "residual":
            number = random.randrange(10 ** 9)
            layers += [{"identity": {"name": f"in{number}"}},
                       {"conv2d": {"filters": channels, "kernel": 3, "name": f"block{number}/conv"}},
                       {"add": {"inputs": [f"in{number}", f"block{number}/conv"]}}]
        else:
            layers.append(random.choice(ACTIVATIONS))
    return layers, shape


def sequence_layers(random):
    """Layers for steps x features that end with one vector."""
    layers = []
    for _ in range(random.randrange(3)):
        layers.append(random.choice([{"dense": {"units": 5}}, "layer_norm", {"attention": {"units": 4, "heads": 2}},
                                     {"gru": {"units": 3}}, {"lstm": {"units": 3, "bidirectional": True}},
                                     {"positional_embedding": {"kind": "sinusoidal"}}, {"dropout": {"rate": 0.1}}]))
    return layers + [random.choice(["last_step", "flatten", {"lstm": {"units": 4}}])]


def valid_config(random):
    kind = random.choice(["flat", "flat", "space", "space", "space", "sequence"])
    shape = {"flat": [48], "space": random.choice([[4, 4, 3], [8, 6, 1], [6, 8, 1], [2, 2, 12]]), "sequence": [6, 8]}[kind]
    layers = []
    if kind == "space":
        layers, _ = spatial_layers(random, tuple(shape))
        layers.append(random.choice(["flatten", "flatten", "global_avg_pool", "global_max_pool"]))
    elif kind == "sequence":
        layers = sequence_layers(random)
        if isinstance(layers[-1], dict):
            layers.append("last_step")
    for _ in range(random.randrange(3)):
        layers.append({"dense": {"units": random.choice([1, 4, 9])}})
        layers.append(random.choice([*ACTIVATIONS, "batch_norm", "layer_norm", {"dropout": {"rate": 0.5}}]))
    layers.append({"dense": {"name": "logits", "units": 3}})
    loss = random.choice(["softmax_cross_entropy", {"softmax_cross_entropy": {"label_smoothing": 0.1}},
                          {"softmax_cross_entropy": {"class_weights": [1, 2, 3]}}, {"focal": {"activation": "softmax"}},
                          {"dice": {}}, None])
    config = {"seed": random.randrange(100), "shards": random.choice([3, 4, 6, 8]),
              "data": {"format": "csv", "path": "data.csv", "shape": shape, "train": {"rows": [0, 32]}},
              "model": {"layers": layers}, "optimizer": random.choice(OPTIMIZERS),
              "train": {"batch_size": random.choice([8, 12, 16, 31]), "epochs": 1}}
    if loss is not None:
        config["model"]["loss"] = loss
    if random.random() < 0.5:
        config["data"]["eval"] = {"rows": [32, 48]}
        config["eval"] = {"metrics": random.choice([["accuracy"], [{"top_k": {"k": 2}}], ["precision", "recall"], []])}
    for section, choices in (
            ("gradients", [{"clip_global_norm": 1}, {"clip_value": [-1, 2]}, {"record_norm": True}]),
            ("precision", [{"compute": "bfloat16"}, {"compute": "float16"}]),
            ("gpu", [{"check_plans": False}, {"choose": "measured"}]),
            ("comm", [{"overlap": "on"}, {"bucket_mb": 0.001, "bucket_first_mb": 0.001}, {"sparse_below": 0}]),
            ("checkpoint", [{"every_steps": 1}, {"keep": 0}, {"background": False}]),
            ("summary", [{"every_steps": 1}, {"events": False}]),
            ("hooks", [[{"logging": {"every_steps": 1}}], [{"loss_spike": {"window": 3}}]])):
        if random.random() < 0.2:
            config[section] = random.choice(choices)
    if random.random() < 0.2:
        config["model"]["regularization"] = [{"variables": "*/kernel", "l2": 0.001}]
    if random.random() < 0.3:
        config["data"].update({"scale": 0.5, "offset": 0.1})
    return config


def to_yaml(tree):
    """Block style at the top, flow style (JSON) below, so that mistakes have lines of their own."""
    if not isinstance(tree, dict):
        return json.dumps(tree) + "\n"
    text = ""
    for key, value in tree.items():
        if isinstance(value, dict) and value and key in ("model", "data", "train"):
            text += f"{json.dumps(key)}:\n"
            for name, item in value.items():
                if isinstance(item, list) and item and name == "layers":
                    text += f"  {json.dumps(name)}:\n" + "".join(f"    - {json.dumps(layer)}\n" for layer in item)
                else:
                    text += f"  {json.dumps(name)}: {json.dumps(item)}\n"
        else:
            text += f"{json.dumps(key)}: {json.dumps(value)}\n"
    return text


def places(tree, path=()):
    """All paths into a tree, the root excluded."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


def at_text(tree, path):
    """The value at a path whose keys are texts."""
    for key in path:
        tree = tree[int(key)] if isinstance(tree, list) else tree[key]
    return tree


def nasty(random, huge):
    return copy.deepcopy(random.choice(NASTY + HUGE if huge else NASTY))


def mutated_tree(random, tree, huge=False):
    tree = copy.deepcopy(tree)
    path = random.choice(list(places(tree)) or [()])
    if not path:
        return tree
    parent, key = at(tree, path[:-1]), path[-1]
    action = random.randrange(6)
    if action == 0:
        del parent[key]
    elif action == 1 and isinstance(parent, dict):
        parent[random.choice(UNKNOWN)] = nasty(random, huge)
    elif action == 2 and isinstance(parent, dict):
        parent[random.choice(UNKNOWN)] = parent.pop(key)
    elif action == 3 and isinstance(parent, list):
        parent.insert(random.randrange(len(parent) + 1), copy.deepcopy(random.choice(parent)))
    elif action == 4 and isinstance(parent[key], (int, float)) and not isinstance(parent[key], bool):
        parent[key] = random.choice([-parent[key], 0, parent[key] + 1, parent[key] * 1000, str(parent[key]), [parent[key]]])
    else:
        parent[key] = nasty(random, huge)
    return tree


def broken_text(random, text):
    """Bytes changed, cut, doubled or inserted. Bytes that are no UTF-8 are surrogates."""
    data = bytearray(text.encode("utf-8", "surrogateescape"))
    for _ in range(random.choice([1, 1, 2, 5, 20])):
        if not data:
            break
        where = random.randrange(len(data))
        action = random.randrange(6)
        if action == 0:
            data[where] = random.randrange(256)
        elif action == 1:
            del data[where:where + random.choice([1, 1, 5, 100])]
        elif action == 2:
            del data[where:]
        elif action == 3:
            data[where:where] = data[where:where + random.choice([1, 10, 100])]
        elif action == 4:
            data[where:where] = random.choice([b"\0", b"\t", b"\n", b"[", b"]", b"{", b"}", b": ", b"- ", b"&a ", b"*a", b"---\n",
                                               b"!!int ", b"!x ", b"? ", b"| ", b"\xff", b"%YAML 1.2\n", b"\xef\xbb\xbf", b"'", b'"'])
        else:
            data[where:where] = random.choice([b"[" * 600, b"- " * 600, b"a: &a [*a]\n", b"x" * 5000, b"{a: " * 200])
    return bytes(data).decode("utf-8", "surrogateescape")


def broken_options(random, config, huge=False):
    """Options of the command line, most of them wrong."""
    options = []
    for _ in range(random.choice([1, 1, 2, 4])):
        path = [str(key) for key in random.choice(list(places(config)))]
        action = random.randrange(5)
        if action == 0:
            path.append(random.choice(UNKNOWN) or "x")
        elif action == 1:
            path.insert(random.randrange(len(path)), random.choice(UNKNOWN))
        elif action == 2 and len(path) > 1:
            del path[random.randrange(len(path))]
        value = nasty(random, huge)
        if random.random() < 0.4:  # an option that is right changes nothing
            path = [str(key) for key in random.choice(list(places(config)))]
            value = at_text(config, path)
        text = value if isinstance(value, str) and random.random() < 0.5 else json.dumps(value)
        assignment = random.choice(9 * ["{}={}"] + ["{}", "={1}", "{}=={}", "{}=[{}"]).format(".".join(path), text)
        options += ["--set", assignment.replace("\0", "")]
    return options


def train_options(random):
    """Options of `lockstep train`, right and wrong."""
    values = ["0", "1", "2", "-1", "", "x", "1e3", "99999999999999999999", "2147483648", "auto", "never", "must", "/", "/dev/null",
              "/proc/nothing", "a\nb", "--steps"]
    names = ["--steps", "--threads", "--resume", "--record", "--run-dir", "--quiet", "--set", "--hang-rank", "--hang-seconds",
             "--foo", "--help", "--version", "extra"]
    options = []
    for _ in range(random.choice([1, 1, 2, 3])):
        name = random.choice(names)
        if name == "--hang-rank":  # holds a rank until a debugger comes
            options += [name, random.choice(["-1", "x", ""])]
        elif name in ("--quiet", "--help", "--version", "extra"):
            options.append(name)
        else:
            options += [name, random.choice(values)] if random.random() < 0.7 else [f"{name}={random.choice(values)}"]
    return options
