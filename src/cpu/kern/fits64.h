/* SPDX-License-Identifier: MIT */
/* cpu/kern/fits64.h: polynomials and tables for functions of float64. Made by tools/fit_maths.py.
 */
#ifndef TNI_CPU_KERN_FITS64_H
#define TNI_CPU_KERN_FITS64_H

/* Tables that registers are loaded from. */
#ifndef TNI_ALIGNED
#    define TNI_ALIGNED __attribute__((aligned(64)))
#endif

/* 2^(j/16) */
static const double fit_roots[16] TNI_ALIGNED = {
    0x1p+0,
    0x1.0b5586cf9890fp+0,
    0x1.172b83c7d517bp+0,
    0x1.2387a6e756238p+0,
    0x1.306fe0a31b715p+0,
    0x1.3dea64c123422p+0,
    0x1.4bfdad5362a27p+0,
    0x1.5ab07dd485429p+0,
    0x1.6a09e667f3bcdp+0,
    0x1.7a11473eb0187p+0,
    0x1.8ace5422aa0dbp+0,
    0x1.9c49182a3f09p+0,
    0x1.ae89f995ad3adp+0,
    0x1.c199bdd85529cp+0,
    0x1.d5818dcfba487p+0,
    0x1.ea4afa2a490dap+0,
};

/* what that lacks */
static const double fit_roots_low[16] TNI_ALIGNED = {
    0x0p+0,
    0x1.8a62e4adc610bp-54,
    -0x1.19041b9d78a76p-55,
    0x1.9b07eb6c70573p-54,
    0x1.6f46ad23182e4p-55,
    0x1.ada0911f09ebcp-55,
    0x1.d4397afec42e2p-56,
    0x1.6324c054647adp-54,
    -0x1.bdd3413b26456p-54,
    -0x1.41577ee04992fp-55,
    0x1.6e9f156864b27p-54,
    0x1.c7c46b071f2bep-56,
    0x1.7a1cd345dcc81p-54,
    0x1.11065895048ddp-55,
    0x1.2ed02d75b3707p-55,
    -0x1.e9c23179c2893p-54,
};

/* 16 / log 2, and log 2 / 16 in two parts */
static const double fit_step[3] = {
    0x1.71547652b82fep+4,
    0x1.62e42fefap-5,
    0x1.cf79abc9e3b3ap-44,
};

/* (exp(r) - 1 - r) / r^2 for r up to log 2 / 32 */
static const double fit_exp[5] = {
    0x1.0000000000005p-1, 0x1.555555548d08dp-3,  0x1.555555545b919p-5,
    0x1.11123c8e370c1p-7, 0x1.6c186087bc36dp-10,
};

/* the same, relative to r */
static const double fit_expm1[6] = {
    0x1.0000000000003p-1, 0x1.5555555555559p-3,  0x1.55555554ab317p-5,
    0x1.111111108ddb4p-7, 0x1.6c18216d8ff82p-10, 0x1.a01b8b3b26bd3p-13,
};

/* c, in the middle of a sixteenth of the mantissas from 0.671875 on */
static const double fit_log_centre[16] TNI_ALIGNED = {
    0x1.6p-1, 0x1.7p-1, 0x1.8p-1, 0x1.9p-1, 0x1.ap-1, 0x1.bp-1, 0x1.cp-1, 0x1.dp-1,
    0x1.ep-1, 0x1.fp-1, 0x1p+0,   0x1.1p+0, 0x1.2p+0, 0x1.3p+0, 0x1.4p+0, 0x1.5p+0,
};

/* 1 / c */
static const double fit_log_inverse[16] TNI_ALIGNED = {
    0x1.745d1745d1746p+0,
    0x1.642c8590b2164p+0,
    0x1.5555555555555p+0,
    0x1.47ae147ae147bp+0,
    0x1.3b13b13b13b14p+0,
    0x1.2f684bda12f68p+0,
    0x1.2492492492492p+0,
    0x1.1a7b9611a7b96p+0,
    0x1.1111111111111p+0,
    0x1.0842108421084p+0,
    0x1p+0,
    0x1.e1e1e1e1e1e1ep-1,
    0x1.c71c71c71c71cp-1,
    0x1.af286bca1af28p-1,
    0x1.999999999999ap-1,
    0x1.8618618618618p-1,
};

/* log of c, to 41 places */
static const double fit_log_high[16] TNI_ALIGNED = {
    -0x1.7fafa3bd82p-2,
    -0x1.522ae0738ap-2,
    -0x1.269621134ep-2,
    -0x1.f991c6cb3cp-3,
    -0x1.a93ed3c8acp-3,
    -0x1.5bf406b544p-3,
    -0x1.1178e8228p-3,
    -0x1.9335e5d598p-4,
    -0x1.08598b59ep-4,
    -0x1.0415d89e7p-5,
    0x0p+0,
    0x1.f0a30c011p-5,
    0x1.e27076e2bp-4,
    0x1.5ff3070a78p-3,
    0x1.c8ff7c79a8p-3,
    0x1.1675cababap-2,
};

/* the rest */
static const double fit_log_low[16] TNI_ALIGNED = {
    0x1.5c8243204959ap-43,
    -0x1.ebe708164c759p-45,
    0x1.1b61f10522625p-44,
    0x1.90d04cd7cc834p-44,
    -0x1.9e36f2bea77a6p-43,
    0x1.27023eb68981cp-46,
    0x1.b8421cc74be04p-43,
    0x1.b3ba8f150ae0ap-43,
    -0x1.d034451fecdfbp-43,
    -0x1.1111c05cf1d75p-43,
    0x0p+0,
    0x1.8a9985f325c5cp-43,
    -0x1.a342c2af0003cp-45,
    0x1.3d3c873e20a07p-43,
    0x1.a21ac25d81ef3p-43,
    0x1.8380e731f55c4p-44,
};

/* log of 2 in two parts, and of e */
static const double fit_log_of_2[3] = {
    0x1.62e42fefa4p-1,
    -0x1.8432a1b0e2634p-43,
    0x1p+0,
};

/* log2 of c, to 41 places */
static const double fit_log2_high[16] TNI_ALIGNED = {
    -0x1.14c560fe69p-1,
    -0x1.e7df5fe538p-2,
    -0x1.a8ff97181p-2,
    -0x1.6cb0f6865cp-2,
    -0x1.32bfee370ep-2,
    -0x1.f5fd8a9064p-3,
    -0x1.8a8980abfcp-3,
    -0x1.22dadc2ab4p-3,
    -0x1.7d60496cf8p-4,
    -0x1.77394c9d9p-5,
    0x0p+0,
    0x1.663f6fac9p-4,
    0x1.5c01a39fbcp-3,
    0x1.fbc16b9028p-3,
    0x1.49a784bcd2p-2,
    0x1.91bba891f2p-2,
};

/* the rest */
static const double fit_log2_low[16] TNI_ALIGNED = {
    0x1.41dfc7d7c3321p-43,
    -0x1.5669df6a2b592p-43,
    -0x1.4bc302ffa76fbp-43,
    -0x1.1d406db502403p-43,
    -0x1.cd0cb4492f1bcp-43,
    0x1.cb6f70109b0f1p-47,
    0x1.66cccab240e9p-46,
    0x1.6d25a5b8a19b2p-44,
    -0x1.da6339da288fcp-43,
    -0x1.635577970e04p-43,
    0x0p+0,
    0x1.3167ccc538261p-44,
    0x1.6879fa00b120ap-43,
    -0x1.7f5dc57266758p-43,
    -0x1.1d406db502403p-44,
    -0x1.1ee969a95f529p-43,
};

/* log2 of 2 in two parts, and of e */
static const double fit_log2_of_2[3] = {
    0x1p+0,
    0x0p+0,
    0x1.71547652b82fep+0,
};

/* log10 of c, to 41 places */
static const double fit_log10_high[16] TNI_ALIGNED = {
    -0x1.4d43f8275cp-3,
    -0x1.25ba8215bp-3,
    -0x1.ffbfc2bbc8p-4,
    -0x1.b721cd1718p-4,
    -0x1.715d0ce368p-4,
    -0x1.2e3a740b78p-4,
    -0x1.db11ed767p-5,
    -0x1.5e3966b7fp-5,
    -0x1.cb38fccd8p-6,
    -0x1.c3d083778p-7,
    0x0p+0,
    0x1.af5f92bp-6,
    0x1.a30a9d60ap-5,
    0x1.31b3055c48p-4,
    0x1.8cf1838868p-4,
    0x1.e3bc1ab0ep-4,
};

/* the rest */
static const double fit_log10_low[16] TNI_ALIGNED = {
    0x1.b7cd59750ce36p-43,
    0x1.007bf2d8bf07ap-44,
    0x1.ff229f20ed3d2p-46,
    0x1.40eb504cfa313p-43,
    0x1.41149840eaa65p-46,
    -0x1.d288560689912p-53,
    0x1.502f348f0f913p-43,
    0x1.b5ab9118cb412p-43,
    -0x1.7fb6d2d6528c7p-43,
    -0x1.310272fe17537p-45,
    0x0p+0,
    0x1.cc1f4dbc14db5p-43,
    -0x1.0163d7e67d282p-45,
    -0x1.dcffc97be8c9cp-45,
    -0x1.bf9b26ba70341p-43,
    0x1.9fe3d562a53fp-44,
};

/* log10 of 2 in two parts, and of e */
static const double fit_log10_of_2[3] = {
    0x1.34413509f8p-2,
    -0x1.80433b83b532ap-44,
    0x1.bcb7b1526e50ep-2,
};

/* (log(1 + r) - r) / r^2 */
static const double fit_log[8] = {
    -0x1.fffffffffffd8p-2, 0x1.5555555555a31p-2, -0x1.0000000094e5p-2,  0x1.99999987e350bp-3,
    -0x1.55554300ba588p-3, 0x1.2492d6f29ca64p-3, -0x1.006a3873ad442p-3, 0x1.c4c05ae37d95cp-4,
};

/* (log(1 + r) - r + r^2 / 2) / r^3 */
static const double fit_log_cube[9] = {
    0x1.5555555555555p-2,  -0x1.fffffffffff22p-3, 0x1.999999999ba91p-3,
    -0x1.55555557358b9p-3, 0x1.2492490427c88p-3,  -0x1.ffffd4b399288p-4,
    0x1.c71de76fc71fdp-4,  -0x1.9a6638852b881p-4, 0x1.71d3e72086d75p-4,
};

/* 2 / pi, and pi / 2 in three parts, of which the first two have 37 bits */
static const double fit_half_pi[4] = {
    0x1.45f306dc9c883p-1,
    0x1.921fb5444p+0,
    0x1.68c234c4cp-39,
    0x1.98a2e03707345p-77,
};

/* (sin(r) / r - 1) / z for z = r^2, r up to pi / 4 */
static const double fit_sin[6] = {
    -0x1.5555555555549p-3, 0x1.111111110f88p-7,    -0x1.a01a019c1259dp-13,
    0x1.71de3578652fcp-19, -0x1.ae5e66c8bba1bp-26, 0x1.5d932bac27a8ap-33,
};

/* (cos(r) - 1) / z, r up to pi / 4 */
static const double fit_cos[7] = {
    -0x1p-1,
    0x1.555555555553cp-5,
    -0x1.6c16c16c13f18p-10,
    0x1.a01a019b6f7adp-16,
    -0x1.27e4f7536fee6p-22,
    0x1.1ee984a5a72f5p-29,
    -0x1.8f806b06155d6p-37,
};

/* (asin(t) / t - 1) / z for z = t^2, t up to 1/2 */
static const double fit_asin[12] = {
    0x1.5555555555387p-3, 0x1.333333336f8c6p-4, 0x1.6db6db41d21bap-5,  0x1.f1c72c6db9169p-6,
    0x1.6e89ef724839p-6,  0x1.1c6c2816c19a3p-6, 0x1.c6f87865066e7p-7,  0x1.8ee4c242ee2bep-7,
    0x1.aab2ed5e50d1cp-8, 0x1.40b24a2c934cbp-6, -0x1.0af55a35c75bdp-6, 0x1.05ce7f3210c22p-5,
};

/* (atan(t) / t - 1) / z, t up to sqrt 2 - 1 */
static const double fit_atan[11] = {
    -0x1.555555555553dp-2, 0x1.99999999958fbp-3, -0x1.24924922b187ap-3, 0x1.c71c70e7cc078p-4,
    -0x1.745cf90ff3119p-4, 0x1.3b111cbd4dab3p-4, -0x1.10ebe1aa67811p-4, 0x1.df11a3d1164f5p-5,
    -0x1.9cdd3ca0d6f38p-5, 0x1.37f010308963cp-5, -0x1.25a38f477cff3p-6,
};

/* erf(x) / x - 1 for z = x^2, x up to 3/8 */
static const double fit_erf_near[8] = {
    0x1.06eba8214db68p-3, -0x1.812746b03797p-2,  0x1.ce2f21a0315f1p-4,  -0x1.b82ce303118a2p-6,
    0x1.565bc64a89068p-8, -0x1.c02a7c5a2b38p-11, 0x1.f8c9ad9434542p-14, -0x1.d6c1748c19584p-17,
};

/* erf, in pieces of 23/64 about 3/8 and more */
static const double fit_erf[14][16] TNI_ALIGNED = {
    {0x1.9dd0d2b721f39p-2, 0x1.66e86d0312e82p-1, 0x1.c194b1d49a184p-1, 0x1.eb9558e6b42cep-1,
     0x1.fab0dd89d1309p-1, 0x1.fee8d486585eep-1, 0x1.ffd2eae369a07p-1, 0x1.fffa4bc63ee9ap-1,
     0x1.ffff6f9f67e55p-1, 0x1.fffff4dde0118p-1, 0x1.ffffff54dab72p-1, 0x1.fffffff801c1fp-1,
     0x1.ffffffffb5be5p-1, 0x1.fffffffffde86p-1, 0x1.fffffffffff45p-1, 0x1.ffffffffffffdp-1},
    {-0x1.0ed459062b6efp-56, -0x1.45c424488d576p-55, -0x1.685c8fa6aee9p-57, -0x1.d9754dd2a8b4p-56,
     -0x1.ae73993e3674p-55, 0x1.fc39025c22a1ep-55, -0x1.83b7bf1cf6deap-57, -0x1.1978dba5a1c88p-56,
     0x1.e1e448f0c95p-55, 0x1.e79cb3c4f15bbp-55, -0x1.a443b00a0407fp-55, -0x1.063587e87a2c1p-57,
     -0x1.729d73d2753c9p-56, 0x1.d016779b8c76dp-55, -0x1.5948eeda94d1p-55, -0x1.6826d9eb04d86p-56},
    {0x1.f5f0cdaf15314p-1, 0x1.50e79d1749accp-1, 0x1.5d4fd33729012p-2, 0x1.17bb2c8d41532p-3,
     0x1.5a08e85af27ebp-5, 0x1.4a9cf6bda3f58p-7, 0x1.e7f232d9e25e3p-10, 0x1.161be46ad3b0bp-12,
     0x1.e9b5e8d00d0b4p-16, 0x1.4d0231928ccbdp-19, 0x1.5dcd669f2c60bp-23, 0x1.1bcca373b06f1p-27,
     0x1.63ac6b4eac397p-32, 0x1.5847eda5717bap-37, 0x1.01647ba603f77p-42, 0x1.2941757b3a102p-48},
    {-0x1.78749a434fe5cp-2, -0x1.eed42eba3437bp-2, -0x1.7e0f4f0454d97p-2, -0x1.967bfcbd42ec3p-3,
     -0x1.399812926bc22p-4, -0x1.670673f1f00dap-6, -0x1.34c7442de1428p-8, -0x1.91f4502265f1ep-11,
     -0x1.8de3cd290a7c1p-14, -0x1.2c7cfabb3cf8fp-17, -0x1.5b11cbd1eef3ap-21, -0x1.33146cdc330f5p-25,
     -0x1.a0ce0dc04c4fdp-30, -0x1.b262c0d811be6p-35, -0x1.5be1cf1f108f8p-40,
     -0x1.ac775a589c203p-46},
    {-0x1.e106c51d1fe0ep-3, 0x1.1a8237ba20577p-6, 0x1.444bc66c36ec5p-3, 0x1.2c89b8a843cep-3,
     0x1.4140efb718b02p-4, 0x1.d0bc8416b1acdp-6, 0x1.e066bed09d56bp-8, 0x1.6c1fbf82ec462p-10,
     0x1.9aa489e3bba2cp-13, 0x1.5ba6464302d46p-16, 0x1.bc91a6b1f2447p-20, 0x1.af339b969f51ep-24,
     0x1.3e380de19305bp-28, 0x1.66359167c9f2ep-33, 0x1.341809b8b432fp-38, 0x1.958954c4d4baep-44},
    {0x1.5529abcd024a7p-3, 0x1.3ceb4fc2b308p-3, 0x1.356dbb542d936p-5, -0x1.4b759a575a5e5p-5,
     -0x1.7535a61a41fbap-5, -0x1.80ffe61ffdd6bp-6, -0x1.f914f2c60c74ep-8, -0x1.cb47d5702b8e3p-10,
     -0x1.2c7d5ef053e8cp-12, -0x1.20a89f2c3a31dp-15, -0x1.9c2c5d12ab32ep-19, -0x1.b8fbce4575458p-23,
     -0x1.638bc501760a7p-27, -0x1.b1dc23b0f082bp-32, -0x1.91e9bf08d946dp-37, -0x1.1b58522c4c95p-42},
    {0x1.7488b8ab71527p-5, -0x1.9ec19fa506ac7p-5, -0x1.0643de70d68d2p-4, -0x1.4ff837c747accp-6,
     0x1.374c88d07658bp-7, 0x1.861850992c53bp-7, 0x1.6f4662f2cb77ap-8, 0x1.a5ce55520d8c5p-10,
     0x1.490a4d2a6949fp-12, 0x1.6c9a81bd9fa7p-15, 0x1.25d1e3baa3313p-18, 0x1.5d62e5562c022p-22,
     0x1.3575385ba06e6p-26, 0x1.9b0fc00e92e2bp-31, 0x1.9b760da316d24p-36, 0x1.37862a9931c1p-41},
    {-0x1.9a7945cf935d1p-5, -0x1.d909563a95fcbp-6, 0x1.b2e1f8640951p-7, 0x1.53837c48fe1c5p-6,
     0x1.a40709e26dddp-8, -0x1.34514b4d514b4p-9, -0x1.5e66458560d51p-9, -0x1.1bf3ebf3a6b52p-10,
     -0x1.145464ea2aad9p-12, -0x1.69b020078fc27p-15, -0x1.4dbe26d9eaf57p-18, -0x1.bd43c5ecfe11cp-22,
     -0x1.b41f31b062377p-26, -0x1.3cd6b7609d9c5p-30, -0x1.57f313a2e138ap-35,
     -0x1.187733ea7b435p-40},
    {-0x1.65c11723cae39p-8, 0x1.28c18fdb2a2a5p-6, 0x1.6ba6e0ebe7967p-7, -0x1.e7ba53280c896p-9,
     -0x1.6dc07fa47deeap-8, -0x1.6864e1c1eb4f1p-10, 0x1.3a15a5ebfddf4p-11, 0x1.0c2b54a48936dp-11,
     0x1.647f6c00bf7c8p-13, 0x1.1e2e24eb5ef8ep-15, 0x1.347bc248ecac9p-18, 0x1.d36e7a1b8c607p-22,
     0x1.fe6a54a8b9ca7p-26, 0x1.97f10b97ba1e4p-30, 0x1.e2500c58328cdp-35, 0x1.a8f5219bcc659p-40},
    {0x1.709ab521a1659p-7, 0x1.770f56c77769p-9, -0x1.814012ac51c83p-8, -0x1.94d754ee34ccbp-9,
     0x1.2ee6cebab3212p-10, 0x1.47d1a386dd8d1p-10, 0x1.9657f8def4f97p-13, -0x1.20668cd0ea373p-13,
     -0x1.567479c4fe9dfp-14, -0x1.6974f29cafc3fp-16, -0x1.d51d273f05219p-19, -0x1.9a5c5f7494823p-22,
     -0x1.f8afaa80470a4p-26, -0x1.becf6d7829548p-30, -0x1.211530aad40dap-34,
     -0x1.1436a936bc036p-39},
    {0x1.046de3a6a8407p-13, -0x1.05645ca30004bp-8, -0x1.7e5c01b099391p-11, 0x1.c31a01416ffc9p-10,
     0x1.44fcf23dc0667p-11, -0x1.608a7cf4f1aafp-12, -0x1.d8e5c48da8f6ap-13, -0x1.753fda5391cdp-17,
     0x1.b2ccfd9b28bbcp-16, 0x1.6546f634b6d61p-17, 0x1.25c24c8570431p-19, 0x1.2fbc40120b8afp-22,
     0x1.aa424c7ca8d5p-26, 0x1.a568da638bd53p-30, 0x1.2bf897b595c16p-34, 0x1.37e5136f4f437p-39},
    {-0x1.0753a98514fbbp-9, 0x1.42a22a7d379fdp-14, 0x1.3bc04c9bbb7p-10, 0x1.9b64a29094362p-15,
     -0x1.c2f8b288bc2dep-12, -0x1.3ffb78f7e914dp-14, 0x1.4e4a8643d20acp-14, 0x1.030b68f28d94cp-15,
     -0x1.38936366b9dc9p-19, -0x1.02c6aebad1949p-18, -0x1.2b92851d54e1ap-20, -0x1.7c013a93ede6fp-23,
     -0x1.35fb638a70914p-26, -0x1.5a0f37f918d27p-30, -0x1.11161d4ab26bbp-34, -0x1.36bddc47ea3dp-39},
    {0x1.dacebb678077cp-14, 0x1.4c6b64046a777p-11, -0x1.e5249693294c4p-14, -0x1.31daeead6efbdp-12,
     0x1.4058882580ed6p-15, 0x1.629eb005bb237p-14, 0x1.7ae1b1c09a97cp-21, -0x1.dfcfbd5c9c86p-17,
     -0x1.8819778392f1dp-19, 0x1.9d5019cfdb33dp-21, 0x1.e1a11dbbf6ee1p-22, 0x1.9575e615fbdd3p-24,
     0x1.8f32a0653dd74p-27, 0x1.01f7708e5be93p-30, 0x1.cc6591ecbf43fp-35, 0x1.23c23f6700e94p-39},
    {0x1.343c766c76674p-12, -0x1.6b6ba858f9f6cp-14, -0x1.4dbd3bf74a17fp-13, 0x1.04ba5ab238abap-14,
     0x1.bada7822ec47p-15, -0x1.3a8813e3317bap-16, -0x1.98990dc771983p-17, 0x1.240fec1b701a4p-19,
     0x1.ff3e0a448125dp-20, 0x1.ff999680a6dfap-24, -0x1.0db64973dfd71p-23, -0x1.5cfcb230c96a5p-25,
     -0x1.acdb9447083d4p-28, -0x1.43c4911562157p-31, -0x1.46a7d9dc08f0fp-35,
     -0x1.cae135cf0da8fp-40},
};

/* erfinv(x) / x, in pieces of w + 5/2, from 5/2 to 40, for w = -log(1 - x^2); the first row has 26
 * bits */
static const double fit_erfinv[14][16] TNI_ALIGNED = {
    {0x1.69545b8p+2, 0x1.e3cbeep-1, 0x1.10d2fb8p+0, 0x1.30871b8p+0, 0x1.60912dp+0, 0x1.9fa073p+0,
     0x1.dbd8f28p+0, 0x1.0a374ep+1, 0x1.313c8a8p+1, 0x1.5fcb08p+1, 0x1.897f938p+1, 0x1.af86488p+1,
     0x1.e35a5bp+1, 0x1.10a02b8p+2, 0x1.2c8b82p+2, 0x1.462c4a8p+2},
    {-0x1.d34a008700efap-25, 0x1.962df840b00c4p-31, -0x1.f2ce66b4a5daap-28, 0x1.98e8ef2dd991bp-30,
     0x1.50286b526b0d4p-28, -0x1.28d2449a2b59p-28, 0x1.52e4e17fa7edap-27, -0x1.244ea6223b9bcp-28,
     -0x1.31461ce586e5ep-27, 0x1.c9c662b1f3cafp-26, 0x1.c55efac9b2bd4p-29, 0x1.ea671b933b8e8p-27,
     -0x1.7d9d04ce97381p-27, 0x1.bfaff6e44e7e4p-25, -0x1.c323355f8c0cdp-28, -0x1.0de9dff2c3098p-25},
    {0x1.654ecb9715655p-4, 0x1.e6144f17c3c4p-3, 0x1.f64904aef0bebp-3, 0x1.ff042646be649p-3,
     0x1.ff8666bb1460ep-3, 0x1.eedbebdce73e6p-3, 0x1.d3ab9f0b4f5c5p-3, 0x1.b5a9a77fee818p-3,
     0x1.8bd646bfff96p-3, 0x1.5f31a91c39801p-3, 0x1.3da4637f50608p-3, 0x1.23d4960e0fdafp-3,
     0x1.068577b0ba9cdp-3, 0x1.d47f19f1cbc4fp-4, 0x1.aad534a224e1cp-4, 0x1.8a856a4ef4925p-4},
    {-0x1.5706f5f929f43p-11, 0x1.3fbad5fe5ca28p-7, 0x1.8d6e7e833c424p-8, 0x1.49362bc17621ap-9,
     -0x1.01f7f04aa44ap-9, -0x1.780def1d3f269p-8, -0x1.d93d4855e9d18p-8, -0x1.dc19732ec80f3p-8,
     -0x1.9978e0bb17f3p-8, -0x1.34145f2474a7ep-8, -0x1.d2ec1612bbc57p-9, -0x1.6d8228bf28d1p-9,
     -0x1.0bf65f38e1c6dp-9, -0x1.7eeb879ae741bp-10, -0x1.22b0dce5ed07ep-10, -0x1.cc5fb28a614bfp-11},
    {0x1.46494578346fp-17, -0x1.3ef76ee038798p-9, -0x1.414e1a12e6ca8p-9, -0x1.276842e431ebbp-9,
     -0x1.bb9627a1f1b06p-10, -0x1.b6666b152ac4bp-11, -0x1.abc2a49f868b5p-13, 0x1.11f31de27ac07p-13,
     0x1.1dc0e8a8999fcp-12, 0x1.dbd7cdb09b502p-13, 0x1.4618c240bed05p-13, 0x1.bd1f03972d738p-14,
     0x1.0c671a711e0e2p-14, 0x1.344ef4fa5230dp-15, 0x1.86eee6ed2ca77p-16, 0x1.09a715d31f279p-16},
    {-0x1.81e8449ccca6p-23, -0x1.1f15b83410741p-14, 0x1.988c50bc3d7a9p-15, 0x1.2d21a92b9db55p-13,
     0x1.c4dab7c60ffe3p-13, 0x1.9912c04a3ea69p-13, 0x1.f29c0ddb8e67bp-14, 0x1.ba62d321b12dcp-15,
     0x1.d3f5dd94bd61dp-19, -0x1.41fa524ee0ap-17, -0x1.ffe9cef3d750ep-18, -0x1.4623fe25962abp-18,
     -0x1.4b9471ed04cc5p-19, -0x1.33a9b8a6e647ep-20, -0x1.463e30ff45ee8p-21,
     -0x1.7cd51eeb76d59p-22},
    {0x1.fd592d1cd6dd4p-29, 0x1.95187888e2da2p-15, 0x1.6f2b888e2cb6bp-15, 0x1.055ac784b3afbp-15,
     0x1.fcca0b3b4e861p-18, -0x1.aab13d20736ecp-17, -0x1.044d0622b2a56p-16, -0x1.5f433aba4206dp-17,
     -0x1.c5a13fa668222p-19, -0x1.b2c18c1c53612p-24, 0x1.4c4d64d3ad945p-22, 0x1.e94de58c92ef2p-23,
     0x1.c1eae51470e5p-24, 0x1.55a906e57460cp-25, 0x1.2f72621ed44efp-26, 0x1.306ef312ab18bp-27},
    {-0x1.672d000f518f3p-34, 0x1.c984a6a5ffdb2p-23, -0x1.9dc3c074889cap-19, -0x1.5293f92f60732p-18,
     -0x1.471ec4e3c955p-18, -0x1.d539ca00030e1p-20, 0x1.0535e256080fbp-21, 0x1.06f839339f0d6p-20,
     0x1.1dd9dbad94252p-21, 0x1.a16f8e388b994p-24, 0x1.acc8aed2e01b7p-33, -0x1.33859891e2023p-27,
     -0x1.3927d382632cp-28, -0x1.938f946b9ec9dp-30, -0x1.2d44b533ab3acp-31, -0x1.03eb3d167e99cp-32},
    {0x1.08c6da92da7aap-39, -0x1.15dd754c4ceccp-20, -0x1.a87780e99c1d7p-21, -0x1.4fa6991f4e911p-22,
     0x1.54508d3acb007p-22, 0x1.e32b14729e5e6p-22, 0x1.7ca0c73c2a8dbp-23, -0x1.0f407282809cfp-27,
     -0x1.a4d5b4a3d08a6p-25, -0x1.fef09dd8a7ecbp-27, -0x1.227150ff1b0b6p-29, 0x1.847876fbf03ffp-34,
     0x1.9aea44746ef5cp-33, 0x1.ecddef6d17b88p-35, 0x1.383d95ade647fp-36, 0x1.cfcac47c051dfp-38},
    {-0x1.92fbcd4caa4ccp-45, 0x1.fa9de7dc0bbf4p-27, 0x1.aed734f385905p-24, 0x1.11f43983a4c04p-23,
     0x1.289eb8013ac3cp-24, -0x1.96f82e5b8b71cp-26, -0x1.1f379349d297dp-25, -0x1.b4ad28e4d1765p-27,
     0x1.e00fa4d217c58p-30, 0x1.9b1023d656ab7p-30, 0x1.5c87ada028cf4p-32, 0x1.3d03cadb062ep-35,
     -0x1.9f473a883ff19p-38, -0x1.2e586b488a54cp-39, -0x1.4d11774da86ecp-41,
     -0x1.aaf626223f87fp-43},
    {0x1.39edd78036c53p-50, 0x1.88aa41dfc7e98p-26, 0x1.cd06ce126859ep-27, -0x1.55df95f3dda31p-30,
     -0x1.bb112e65997c4p-27, -0x1.77bf883c71dc6p-28, 0x1.fc81584b71ec6p-30, 0x1.1b5efe486b465p-29,
     0x1.3de43d40eeb0cp-32, -0x1.bc28a90a4dd68p-34, -0x1.1adc308871802p-35, -0x1.81514f2d9f815p-38,
     -0x1.3ffd9d8bac897p-48, 0x1.6454ed13b4865p-44, 0x1.6931f13b83a37p-46, 0x1.92331d7af3074p-48},
    {-0x1.f254ad17a668ap-56, -0x1.80430016094e4p-31, -0x1.7e14986394bd3p-29, -0x1.7601d8966b4d6p-29,
     -0x1.1a3c55010213bp-32, 0x1.3157f1e2397d4p-30, 0x1.400452ff90989p-32, -0x1.20cc7140cc2e8p-33,
     -0x1.20206d1348513p-34, 0x1.4ae33e0c5a65ep-39, 0x1.5d5dfd00da5a3p-39, 0x1.3380621b443f1p-41,
     0x1.b53133c455107p-46, -0x1.6e0195f701939p-49, -0x1.88305068ebf52p-51, -0x1.813de2971d65cp-53},
    {0x1.9fc9a5d1d62c6p-61, -0x1.188a9d78f1157p-31, -0x1.adfc7f8db7eaap-33, 0x1.a8113886f335bp-33,
     0x1.3f4eeaf34ab67p-32, -0x1.0153094f28ee9p-35, -0x1.39ee52d9a97dcp-34, -0x1.624baa70d6afbp-37,
     0x1.dc736521c7ef3p-38, 0x1.367888930a957p-41, -0x1.2ede2041cc9a7p-43, -0x1.8887e8971bb4dp-45,
     -0x1.c755560b9d0b6p-49, 0x1.94697418bb514p-55, 0x1.a3c93f01c7d2p-56, 0x1.7938850bc35fcp-58},
    {-0x1.56114258153d9p-66, 0x1.9b57ab0dac0e6p-36, 0x1.36ab8f32fbb7ep-34, 0x1.ad90fc63ef681p-35,
     -0x1.661401a526962p-36, -0x1.3191e00361b6ep-36, 0x1.6638a2a30fd05p-38, 0x1.dc3182129536fp-39,
     -0x1.3d9a497167e8ep-42, -0x1.c40341f5e4486p-44, 0x1.4d3db7b7b8609p-49, 0x1.8df0c7b768406p-49,
     0x1.34b3b1ca2f5ap-52, 0x1.6efb80331cebp-59, -0x1.9aa71aa9b65p-61, -0x1.6e4f687bf54a7p-63},
};

/* exp(a^2) erfc(a), in pieces of a + 2, from 2 to 32; the first row has 26 bits */
static const double fit_erfc[16][16] TNI_ALIGNED = {
    {0x1.8a6addp-1, 0x1.038d55p-1, 0x1.78a692p-2, 0x1.23cfc3p-2, 0x1.afbb3fp-3, 0x1.3e0a998p-3,
     0x1.f5b2a08p-4, 0x1.9d8a8fp-4, 0x1.46dc6cp-4, 0x1.fe6cc48p-5, 0x1.a273c58p-5, 0x1.627bccp-5,
     0x1.204dddp-5, 0x1.cd9bc88p-6, 0x1.80d1e88p-6, 0x1.49ebde8p-6},
    {-0x1.2e8ab70d6e4dbp-28, -0x1.5c27cc7b03329p-29, 0x1.38767a00a4782p-30, -0x1.c4703fb13bd36p-31,
     0x1.db9a1d668bcbap-30, 0x1.077489f9c1cap-30, -0x1.b1859d3f894d4p-31, 0x1.142795d49fb33p-31,
     -0x1.bfc260cdb91a7p-34, 0x1.07ca9c392bd88p-32, -0x1.b89325b40962p-37, 0x1.3e5a56e2adf1bp-32,
     -0x1.34c64672604ffp-32, 0x1.b73547fc6fc07p-34, 0x1.a78c3ffe706b5p-35, -0x1.e1fb1c7656a1dp-36},
    {-0x1.7c857b9b3c192p-1, -0x1.78cdd551ee51ap-2, -0x1.abaacdbfa8b07p-3, -0x1.0c3d538446447p-3,
     -0x1.3086d7f01ac89p-4, -0x1.5285d2eb1ef74p-5, -0x1.aa3eb6a946f7ep-6, -0x1.238ca71b93fc3p-6,
     -0x1.6e4b45246f922p-7, -0x1.c046699d77d52p-8, -0x1.2ddd3d589bfbp-8, -0x1.b1be47a913fc3p-9,
     -0x1.1f305584ff3eep-9, -0x1.705e8c068805p-10, -0x1.001a68f1b5449p-10, -0x1.7892d6052da5dp-11},
    {0x1.2b497df35fa2bp-1, 0x1.d90093ae10927p-3, 0x1.b56f45eef7e58p-4, 0x1.c8d0cef0f810dp-5,
     0x1.98958a7a8e49ap-6, 0x1.5d581133378edp-7, 0x1.62c12cb5f7577p-8, 0x1.95252b932efe3p-9,
     0x1.96a3de47d5b16p-10, 0x1.876373f4a0f3ap-11, 0x1.b1c8923879d89p-12, 0x1.0898f73586fcfp-12,
     0x1.1d875467f863bp-13, 0x1.259993494e472p-14, 0x1.54964558f64cep-15, 0x1.ad8ccfc089fa9p-16},
    {-0x1.97997ad330165p-2, -0x1.09e77d40e01cfp-3, -0x1.9b635ac624aacp-5, -0x1.6cb52fe489456p-6,
     -0x1.0632076808cafp-7, -0x1.5e5d7e9898f23p-9, -0x1.218ed930b236fp-10, -0x1.15976ddda3c96p-11,
     -0x1.bf5070ee1774fp-13, -0x1.53c131b5cb12bp-14, -0x1.3672f09812095p-15, -0x1.41e750b2e063p-16,
     -0x1.1b561359e6f02p-17, -0x1.d36fe3dd8fff1p-19, -0x1.c48d27f6c7ceep-20,
     -0x1.e9ab4c8d1c29bp-21},
    {0x1.f0ac9d31f3b03p-3, 0x1.1192f5bd68837p-4, 0x1.68a25a6641f51p-6, 0x1.13648a11ffe79p-7,
     0x1.435c04e20857ep-9, 0x1.5632136d8ccf3p-11, 0x1.d00785f2ed4e3p-13, 0x1.774f4826dc851p-14,
     0x1.e7af6eeff578p-16, 0x1.254381038c804p-17, 0x1.baa1d9d8421cep-19, 0x1.8682d2185614p-20,
     0x1.18a0870878ce3p-21, 0x1.73a4ded43df0dp-23, 0x1.2c675fe07059fp-24, 0x1.16ecc51155d0ep-25},
    {-0x1.146985bdc775cp-3, -0x1.054d68296d071p-5, -0x1.299636d6cc71p-7, -0x1.8bf716a8edf92p-9,
     -0x1.809ce8ae3f4c3p-11, -0x1.460abd6b8be32p-13, -0x1.6d54b133ec963p-15, -0x1.f4e46d17a548ep-17,
     -0x1.078bfe3720e8bp-18, -0x1.f773505cb2906p-21, -0x1.3a555d7a91151p-22, -0x1.d868cc70fec12p-24,
     -0x1.156b53c708d15p-25, -0x1.271eee8131c3bp-27, -0x1.8e79b8190ff1ep-29,
     -0x1.3d8fbf04cb60fp-30},
    {0x1.1d0c27d6bf385p-4, 0x1.d43a7c7a4ccf3p-7, 0x1.d1b695aab7434p-9, 0x1.106bd5c042d25p-10,
     0x1.ba8a67d0174eap-13, 0x1.2f839e5460d0ep-15, 0x1.1ad6a32df4c1bp-17, 0x1.4a17e19c0021p-19,
     0x1.1a6f6b7bcd9b9p-21, 0x1.adc5f7f2cbdd5p-24, 0x1.bcbee2a21329ap-26, 0x1.1cf1ff6c66948p-27,
     0x1.11bbc0f01431bp-29, 0x1.d42321f888184p-32, 0x1.080e891d0753ap-33, 0x1.6952918713e7p-35},
    {-0x1.132db775a6676p-5, -0x1.8c97dd24010c4p-8, -0x1.5b8bc93beed2p-10, -0x1.683888430703ep-12,
     -0x1.edd4201ead68bp-15, -0x1.146bc38cf3e9ap-17, -0x1.aef8ea15bee94p-20, -0x1.add7ac8bdce5dp-22,
     -0x1.2c2db72e6d248p-24, -0x1.6ce662854d918p-27, -0x1.3972860b410ecp-29, -0x1.56cb0dcc1c56dp-31,
     -0x1.0d97a97c4a46cp-33, -0x1.72d7953d5c3a5p-36, -0x1.5daa87a2f3108p-38,
     -0x1.9adb10a810856p-40},
    {0x1.f54ce206d5c53p-7, 0x1.3f818984978d2p-9, 0x1.f0fe6fb55abdcp-12, 0x1.cb4c687c3d87ep-14,
     0x1.0bcba25f1d19dp-16, 0x1.ed2a95f84b5d6p-20, 0x1.4354fb03deb56p-22, 0x1.149cd77a2ee89p-24,
     0x1.3c768b2d070e6p-27, 0x1.342c86da08452p-30, 0x1.b82d44fa3baecp-33, 0x1.9b410ba7f0c77p-35,
     0x1.090573b3d5097p-37, 0x1.2569bb4b55553p-40, 0x1.cea351c344a28p-43, 0x1.d2e2ed1d2012ap-45},
    {-0x1.b181f2e4048afp-8, -0x1.ec0d29064b0adp-11, -0x1.55c0913d3f4e1p-13, -0x1.1b291c3189127p-15,
     -0x1.1ad21d58101a8p-18, -0x1.af5df964c01fp-22, -0x1.de09947bc8358p-25, -0x1.600032fa156fap-27,
     -0x1.4b0186bb1a0eep-30, -0x1.02e8128dc1efap-33, -0x1.33ef1a7627164p-36, -0x1.ec0bb84f96d68p-39,
     -0x1.040cf4f7bc9c6p-41, -0x1.cfbe50d2da3a3p-45, -0x1.31cbcdcaa403dp-47,
     -0x1.091d01e81076bp-49},
    {0x1.65b08729201f6p-9, 0x1.6b98332ebf1a6p-12, 0x1.c5703f0de8e39p-15, 0x1.5273f8a2b38e3p-17,
     0x1.235097d608aa8p-20, 0x1.724fef0153245p-24, 0x1.5c64d884ce6e3p-27, 0x1.bb09cff3ee568p-30,
     0x1.5789cd76b6edap-33, 0x1.b0c96e48b4738p-37, 0x1.ad45546f6a478p-40, 0x1.258f577485ep-42,
     0x1.fd66ccb14c5d8p-46, 0x1.6e08f2e6bfd5cp-49, 0x1.93e9224220152p-52, 0x1.2ce4460816dp-54},
    {-0x1.1aa73b57ce421p-10, -0x1.02a053275bd83p-13, -0x1.22ef1b10160a9p-16, -0x1.88eee7620cc6ap-19,
     -0x1.24bc0d0e51f9bp-22, -0x1.3814b610b9b23p-26, -0x1.f4beb3b56fdeep-30, -0x1.13cc649df27p-32,
     -0x1.6150803d11eb1p-36, -0x1.67a6e13558ea3p-40, -0x1.2a0921cc53f77p-43, -0x1.5d48d1a4a2c1fp-46,
     -0x1.f15ce354bb469p-50, -0x1.2069239c30eadp-53, -0x1.0a751de8592bep-56,
     -0x1.553c8daed37efp-59},
    {0x1.adbc393aaa43p-12, 0x1.6366692785fadp-15, 0x1.6a0ec5d7b8841p-18, 0x1.bc06a4ad7393cp-21,
     0x1.201b10057fbf4p-24, 0x1.02bc366b28734p-28, 0x1.6343f741dd6cbp-32, 0x1.53e7e2a953317p-35,
     0x1.69448c3ce45f3p-39, 0x1.2994e6d19df45p-43, 0x1.9c8008f0091e3p-47, 0x1.9e8e1e7f418cbp-50,
     0x1.e55e5e11eda81p-54, 0x1.c63420e2f0686p-58, 0x1.5f5bfef6c2006p-61, 0x1.82ce5c4ff3262p-64},
    {-0x1.440b0f21d2d2ap-13, -0x1.e4102bcfcdf4bp-17, -0x1.be7993ecbc219p-20, -0x1.f14884799b45dp-23,
     -0x1.246e1d2c2c5dep-26, -0x1.b640b2a8473a2p-31, -0x1.ffd77f54ad408p-35, -0x1.a7aa1d17151b7p-38,
     -0x1.85aa377b58036p-42, -0x1.fdf2164769458p-47, -0x1.2483637e31c51p-50, -0x1.f4ec3e5d2d1b9p-54,
     -0x1.f475d77310644p-58, -0x1.729b33b3a699dp-62, -0x1.daf8825b7cebap-66,
     -0x1.be9136435c9f3p-69},
    {0x1.c733f6d1783d8p-15, 0x1.368cbfea294c3p-18, 0x1.05b36dd6e592p-21, 0x1.0ab1bd141d67bp-24,
     0x1.129116bfe2a4cp-28, 0x1.5ed0fb6343d1bp-33, 0x1.618c7418f5e7cp-37, 0x1.ff5dcb2d65a2dp-41,
     0x1.87fb0fe7ba11cp-45, 0x1.a1769fe6381eep-50, 0x1.91d9ad28a9b59p-54, 0x1.27a3be62c6aabp-57,
     0x1.e66c708418391p-62, 0x1.23149781c0702p-66, 0x1.389ac3c8dec5dp-70, 0x1.f98cf6c6c6109p-74},
};

/* 2^(j/16), of 26 bits */
static const double fit_roots_upper[16] TNI_ALIGNED = {
    0x1p+0,         0x1.0b5587p+0, 0x1.172b84p+0,  0x1.2387a7p+0, 0x1.306fe08p+0, 0x1.3dea65p+0,
    0x1.4bfdad8p+0, 0x1.5ab07ep+0, 0x1.6a09e68p+0, 0x1.7a1147p+0, 0x1.8ace54p+0,  0x1.9c4918p+0,
    0x1.ae89f98p+0, 0x1.c199bep+0, 0x1.d5818ep+0,  0x1.ea4afap+0,
};

/* the rest */
static const double fit_roots_lower[16] TNI_ALIGNED = {
    0x0p+0,
    -0x1.833b784eb3a37p-27,
    -0x1.c15742919041cp-27,
    -0x1.8a9dc7993e052p-28,
    0x1.18db8a96f46adp-27,
    -0x1.f6e5eee525f6fp-27,
    -0x1.64eaec715e343p-27,
    -0x1.5bd5eb539b67fp-27,
    -0x1.80c4336f74d05p-28,
    0x1.f580c36bea881p-27,
    0x1.15506dadd3e2bp-27,
    0x1.51f8480e3e236p-27,
    0x1.5ad3ad5e8734dp-28,
    -0x1.3d56b1eeef9a7p-27,
    -0x1.822dbc6d12fd3p-27,
    0x1.52486cc2c7b9dp-27,
};

#endif
