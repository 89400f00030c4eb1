// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Other names of transforms: torchvision's, Keras', TensorFlow's, Albumentations' and MONAI's.
#include "config/synonyms.h"

namespace lockstep {

namespace {

constexpr std::string_view kPlace = "transform";

// clang-format off: one per line
constexpr Synonym kTable[] = {
    {kPlace, "randomhorizontalflip", "random_flip"},
    {kPlace, "horizontalflip", "random_flip"},
    {kPlace, "hflip", "random_flip"},
    {kPlace, "randomfliplr", "random_flip"},
    {kPlace, "flip", "random_flip"},
    {kPlace, "mirror", "random_flip"},
    {kPlace, "randomverticalflip", "random_flip", "with axes: [vertical]."},
    {kPlace, "verticalflip", "random_flip", "with axes: [vertical]."},
    {kPlace, "vflip", "random_flip", "with axes: [vertical]."},
    {kPlace, "padandcrop", "random_crop", "with padding: 4, for example."},
    {kPlace, "randompadandcrop", "random_crop", "with padding: 4, for example."},
    {kPlace, "randomtranslation", "random_affine",
     "with the option translate; or random_crop with a padding."},
    {kPlace, "translate", "random_affine", "with the option translate; or random_crop with a padding."},
    {kPlace, "randomrotation", "random_affine", "with degrees: [-15, 15], for example."},
    {kPlace, "rotate", "random_affine", "with degrees: [-15, 15], for example."},
    {kPlace, "rotation", "random_affine", "with degrees: [-15, 15], for example."},
    {kPlace, "randomzoom", "random_affine", "with scale: [0.8, 1.2], for example."},
    {kPlace, "randomscale", "random_affine", "with scale: [0.8, 1.2], for example."},
    {kPlace, "randomshear", "random_affine", "with shear: [-10, 10], for example."},
    {kPlace, "shear", "random_affine", "with shear: [-10, 10], for example."},
    {kPlace, "affine", "random_affine"},
    {kPlace, "shiftscalerotate", "random_affine"},
    {kPlace, "randomrotate90", "random_symmetry",
     "with rotations_only: true; without it also mirror images."},
    {kPlace, "rot90", "random_symmetry", "with rotations_only: true; without it also mirror images."},
    {kPlace, "d4", "random_symmetry"},
    {kPlace, "randomoctahedral", "random_symmetry"},
    {kPlace, "centercrop", "crop"},
    {kPlace, "centrecrop", "crop"},
    {kPlace, "resizing", "resize"},
    {kPlace, "rescale", "scale", "or resize, for another size."},
    {kPlace, "rescaling", "scale"},
    {kPlace, "totensor", "",
     "Samples need no conversion; scale: 0.00392156862745098 of the reader makes 0..255 to 0..1."},
    {kPlace, "normalization", "normalize"},
    {kPlace, "meanstd", "normalize"},
    {kPlace, "zscore", "standardize", "for each sample; normalize for the whole set."},
    {kPlace, "perimagestandardization", "standardize"},
    {kPlace, "randomresizecrop", "random_resized_crop"},
    {kPlace, "inceptioncrop", "random_resized_crop"},
    {kPlace, "colourjitter", "color_jitter"},
    {kPlace, "randomcolorjitter", "color_jitter"},
    {kPlace, "randombrightness", "color_jitter", "with the option brightness."},
    {kPlace, "brightness", "color_jitter", "with the option brightness."},
    {kPlace, "randomcontrast", "color_jitter", "with the option contrast."},
    {kPlace, "contrast", "color_jitter", "with the option contrast."},
    {kPlace, "saturation", "color_jitter", "with the option saturation."},
    {kPlace, "randomsaturation", "color_jitter", "with the option saturation."},
    {kPlace, "hue", "color_jitter", "with the option hue."},
    {kPlace, "randomhue", "color_jitter", "with the option hue."},
    {kPlace, "greyscale", "grayscale"},
    {kPlace, "togray", "random_grayscale", "or grayscale, for every sample."},
    {kPlace, "rgbtograyscale", "grayscale"},
    {kPlace, "erasing", "random_erasing"},
    {kPlace, "randomerase", "random_erasing"},
    {kPlace, "coarsedropout", "random_erasing", "or cutout."},
    {kPlace, "gaussiannoise", "random_noise"},
    {kPlace, "gaussnoise", "random_noise"},
    {kPlace, "addnoise", "random_noise"},
    {kPlace, "noise", "random_noise"},
    {kPlace, "clamp", "clip"},
    {kPlace, "log1p", "log"},
    {kPlace, "zeropadding2d", "pad"},
    {kPlace, "padding", "pad"},
    {kPlace, "randaug", "rand_augment"},
    {kPlace, "autoaugment", "rand_augment"},
    {kPlace, "trivialaugment", "rand_augment", "with operations: 1."},
    {kPlace, "mixup", "", "It mixes labels, too: data.mix: {mixup: 0.2, classes: 10}, beside transforms."},
    {kPlace, "cutmix", "", "It mixes labels, too: data.mix: {cutmix: 1, classes: 10}, beside transforms."},
    {kPlace, "onehot", "one_hot"},
    {kPlace, "onehotencoding", "one_hot"},
    {kPlace, "categoryencoding", "one_hot"},
    {kPlace, "tocategorical", "one_hot"},
    {kPlace, "tokenise", "tokenize"},
    {kPlace, "tokenizer", "tokenize"},
    {kPlace, "textvectorization", "tokenize"},
    {kPlace, "vocabularylookup", "lookup"},
    {kPlace, "vocabulary", "tokenize", "for texts; lookup for numbers."},
    {kPlace, "integerlookup", "lookup"},
    {kPlace, "stringlookup", "tokenize"},
    {kPlace, "hashtable", "lookup"},
    {kPlace, "statichashtable", "lookup"},
    {kPlace, "shuffle", "", "The order of samples is train.shuffle."},
    {kPlace, "whiten", "", "It stands beside transforms, and comes before them: data: {whiten: zca}."},
    {kPlace, "whitening", "", "It stands beside transforms, and comes before them: data: {whiten: zca}."},
    {kPlace, "zca", "", "It stands beside transforms, and comes before them: data: {whiten: zca}."},
    {kPlace, "pca", "", "It stands beside transforms, and comes before them: data: {whiten: pca}."},
    {kPlace, "lineartransformation", "", "Whitening stands beside transforms: data: {whiten: zca}."},
    {kPlace, "compose", "", "The list is applied from first to last."},
};
// clang-format on

}  // namespace

std::span<const Synonym> synonyms_of_transforms() { return kTable; }

}  // namespace lockstep
