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

/* erf, in pieces of 25/64 */
static const double fit_erf[13][16] TNI_ALIGNED = {
    {0x0p+0, 0x1.ad68966569a87p-2, 0x1.762870f720c6fp-1, 0x1.ce1962c0e0d8bp-1, 0x1.f21c9f12f0677p-1,
     0x1.fd0f5317f582fp-1, 0x1.ff87b1913e853p-1, 0x1.fff18ebe2b0e1p-1, 0x1.fffeb3ebb267bp-1,
     0x1.ffffe9bf4098cp-1, 0x1.fffffee3cc32cp-1, 0x1.fffffff57632dp-1, 0x1.ffffffffb5be5p-1,
     0x1.fffffffffe7cp-1, 0x1.fffffffffffa2p-1, 0x1.fffffffffffffp-1},
    {0x1.20dd750429b6dp+0, 0x1.eff8c4b1375dfp-1, 0x1.39ccc1b136d6p-1, 0x1.24a55399ea23p-2,
     0x1.92470a61b6961p-4, 0x1.978ae8b55ce4fp-6, 0x1.30499b5039566p-8, 0x1.4ee1429bf7bbcp-11,
     0x1.0f9e1b4dd37fdp-14, 0x1.44ba86467153fp-18, 0x1.1e1e857adc3bep-22, 0x1.7397c5a65871ap-27,
     0x1.63ac6b4e58d7p-32, 0x1.f5cc771502495p-38, 0x1.04e15ec73e0bcp-43, 0x1.8fd4e001481bfp-50},
    {0x1.0d1c32c6b7bddp-54, -0x1.837a59aa7344bp-2, -0x1.ea4feea4e5b3p-2, -0x1.56f1bdf85e61p-2,
     -0x1.3a47801c56a39p-3, -0x1.8dfda7411cb66p-5, -0x1.649642020337ep-7, -0x1.c9d7f9113cb86p-10,
     -0x1.a8670aa99a419p-13, -0x1.1d67f003e951ap-16, -0x1.1769ce59fc29dp-20, -0x1.8f2c0951c0fccp-25,
     -0x1.a0ce0dc018714p-30, -0x1.3e8649978d2d4p-35, -0x1.64ac1f96a45d8p-41,
     -0x1.24d86a158b1d3p-47},
    {-0x1.812746b037ae8p-2, -0x1.cb7bf78e305a7p-3, 0x1.715e595332e64p-5, 0x1.54c0d66d7ac87p-3,
     0x1.0453f90d3c373p-3, 0x1.c24b2053de96p-5, 0x1.fa73d7eb1da41p-7, 0x1.856614216d113p-9,
     0x1.a3737e2a22561p-12, 0x1.40ee07ac07314p-15, 0x1.5fe5d4756aa17p-19, 0x1.161fb53cff76dp-23,
     0x1.3e380deef0f6bp-28, 0x1.085b86a6fdae5p-33, 0x1.3fa8311bb131dp-39, 0x1.19d1220fc47f6p-45},
    {0x1.815180e76938p-40, 0x1.5c0fc77618c02p-3, 0x1.22cdbdb4da354p-3, 0x1.cf82bac198de8p-7,
     -0x1.8a7c6a239cf4cp-5, -0x1.33137b26df8d7p-5, -0x1.daa3005c26c31p-7, -0x1.c812e602cfbc2p-9,
     -0x1.24544f02dc2d9p-11, -0x1.02488b68a35cp-14, -0x1.405da04815ffap-18, -0x1.1a2239f4ef708p-22,
     -0x1.638bc509df9c3p-27, -0x1.4256996b84d41p-32, -0x1.a62b716ea747ap-38,
     -0x1.909da901c250cp-44},
    {0x1.ce2f219b99f37p-4, 0x1.4dd7b2d6077d7p-5, -0x1.da50ae47343bbp-5, -0x1.cf38b9a468db9p-5,
     -0x1.075c0885557b2p-7, 0x1.a342ba1daaf11p-7, 0x1.250942c146a3cp-7, 0x1.7e02d8b2aa6eap-9,
     0x1.2e7e7642789aap-11, 0x1.3b124fcf6f4b1p-14, 0x1.bfc96a8e76482p-18, 0x1.bb32dd397a0d1p-22,
     0x1.3575360075779p-26, 0x1.338c3b573afdp-31, 0x1.b5c5e7d433f83p-37, 0x1.c0556ff651c74p-43},
    {0x1.10688aa7d4a57p-29, -0x1.9ebc1df0e5d18p-5, -0x1.75578f717d829p-6, 0x1.2c17270bf7aafp-6,
     0x1.16f9c9cd1fe7cp-6, 0x1.b4bbc4dd28a7dp-10, -0x1.997578d75ce2dp-9, -0x1.c5229390e1d9ep-10,
     -0x1.da496e48cce8cp-12, -0x1.2c59504c3dacp-14, -0x1.f19ff61b4b56bp-18, -0x1.17c6eead03e97p-21,
     -0x1.b41f2fb075a0ep-26, -0x1.dd9c4231f56dfp-31, -0x1.72de12695b66dp-36,
     -0x1.9b1e5d124c0efp-42},
    {-0x1.b82d0a882b6c8p-6, -0x1.09978e7f146efp-8, 0x1.353311f7c744fp-6, 0x1.e06ba37004bd3p-8,
     -0x1.74c2f8fdda01p-8, -0x1.04938929da762p-8, -0x1.39033a4df3332p-15, 0x1.5834211296425p-11,
     0x1.176cf2addb95p-12, 0x1.c558562ff6d63p-15, 0x1.c0c4dcf419bcbp-18, 0x1.22b7367e5cd8p-21,
     0x1.fe6affe8b157bp-26, 0x1.35e0b564b44a3p-30, 0x1.07b3105582e77p-35, 0x1.3d7adf00a6b62p-41},
    {0x1.e208dfc92a4afp-22, 0x1.70749392c6764p-7, 0x1.39c8a7a49a07ep-10, -0x1.8df7ec0b7e52ap-8,
     -0x1.760c85015942cp-10, 0x1.9f5a2c3adf531p-10, 0x1.6a6d8ea06a83dp-11, -0x1.48c1e56c64bacp-14,
     -0x1.d2ac77c41726dp-14, -0x1.0dba1acfb0dedp-15, -0x1.4b9de8303930fp-18, -0x1.f8adac57c01d1p-22,
     -0x1.f8b018be142ebp-26, -0x1.5638fe9c3608p-30, -0x1.40c8bd5a8d657p-35, -0x1.a4ff229843954p-41},
    {0x1.561e56a0b86c9p-8, -0x1.89e5ba2ad1beep-13, -0x1.fc2a38f03c496p-9, 0x1.46745061cfe45p-13,
     0x1.a3cb3e30a45b3p-10, 0x1.66cafe2d0e97ep-14, -0x1.71ef3fcc2841ep-12, -0x1.4fbbda8b46169p-14,
     0x1.ab07ebc801a6ep-16, 0x1.ea59f366340b2p-17, 0x1.9133542e4cccfp-19, 0x1.70bee79f5c2a8p-22,
     0x1.aa2d3df2c527cp-26, 0x1.45812f13de1c2p-30, 0x1.51d1245fe0636p-35, 0x1.e4c5e6cd99f4bp-41},
    {0x1.4c0b09cd32981p-16, -0x1.0413cd9e4bb29p-9, 0x1.9bcc4540de808p-12, 0x1.116a28da52146p-10,
     -0x1.02a7c65710bc1p-12, -0x1.4a61c31ea5f0cp-12, 0x1.64278881bbe2dp-15, 0x1.e4153b36d74b8p-15,
     0x1.040bb184aa129p-18, -0x1.31ea2e3947a42p-18, -0x1.87188fb673fdbp-20, -0x1.c67362a66471bp-23,
     -0x1.35f06c5837469p-26, -0x1.0de63adceb6ap-30, -0x1.38af9ae0c65b5p-35, -0x1.edb48f1348a97p-41},
    {-0x1.e3df54996c2dep-11, 0x1.5d6b16524e6d6p-13, 0x1.2b2820e05d226p-11, -0x1.f9804eaa06405p-13,
     -0x1.90ecc210360adp-13, 0x1.9104eab90f655p-14, 0x1.4ec1d0fbaaac9p-15, -0x1.ff20f6ff085ccp-17,
     -0x1.ae8c3c117d685p-18, 0x1.059f248babe6ep-21, 0x1.25174ad6df156p-21, 0x1.dcc4485b31304p-24,
     0x1.9110f3979eaedp-27, 0x1.99e518f6a2bcep-31, 0x1.0f592d65cf8e7p-35, 0x1.e194968cb3a24p-41},
    {0x1.1c6d8fcf5e4cp-13, 0x1.2c2a53a5685d8p-12, -0x1.1138a8bc89a9p-13, -0x1.ca0eae01a2b5p-14,
     0x1.66c60c0c607adp-14, 0x1.11a0cdb034e54p-16, -0x1.6a9af9d1d5638p-16, -0x1.da2e17b053192p-20,
     0x1.6ace849e0b358p-19, 0x1.aabce02cd56d3p-22, -0x1.1beeb65e7df79p-23, -0x1.8fc767559640dp-25,
     -0x1.ae7f56318a2e3p-28, -0x1.040ea21904d4ep-31, -0x1.882f7688a0e63p-36,
     -0x1.83cee860f09c8p-41},
};

/* erfinv(x) / x, in pieces of 25/64 of sqrt(-log(1 - x^2)) */
static const double fit_erfinv[13][16] TNI_ALIGNED = {
    {0x1.c5bf891b4ef6bp-1, 0x1.d801f57024a6cp-1, 0x1.08169580fde07p+0, 0x1.3869742558d44p+0,
     0x1.7ca8576351426p+0, 0x1.d0f3a745ab02ep+0, 0x1.177b725b7f97fp+1, 0x1.48ac088642656p+1,
     0x1.7aaa3c1430b73p+1, 0x1.acf4fea928cb1p+1, 0x1.df6142641ce5p+1, 0x1.08eead31b91eep+2,
     0x1.223006cd90d0fp+2, 0x1.3b72091b12085p+2, 0x1.54b32a52e0fc6p+2, 0x1.6df28920395b5p+2},
    {0x1.77a1eb9ea7504p-65, 0x1.7898f6ef2159ep-3, 0x1.85785c389259ep-2, 0x1.2c0b75bdae72ep-1,
     0x1.8b6302fe80361p-1, 0x1.ce0370e230966p-1, 0x1.eff8b63d3a05p-1, 0x1.fd30c573186e2p-1,
     0x1.00f3b54ba7efp+0, 0x1.01e9891be5e97p+0, 0x1.025d18412de2dp+0, 0x1.02920efb96581p+0,
     0x1.02a3edecd69cfp+0, 0x1.02a161cb4088fp+0, 0x1.029303f8ca019p+0, 0x1.027e0369d92c6p+0},
    {0x1.db29fb2fee5e4p-3, 0x1.ef2004d2851efp-3, 0x1.0b001aa4766f4p-2, 0x1.098de0d960dbdp-2,
     0x1.ab0af8e573b0bp-3, 0x1.f79129a3535c2p-4, 0x1.afcdfb9838236p-5, 0x1.32bd106602ee2p-6,
     0x1.cde3e11495361p-8, 0x1.a1092dd4e8735p-9, 0x1.8f0a4b0ea8666p-10, 0x1.4a4ccf2235b8ap-11,
     0x1.deaa5af137f5ap-14, -0x1.86f6595e6308ap-13, -0x1.77bad32ce484cp-12, -0x1.d9f8d681c33a6p-12},
    {0x1.714baabf6a482p-50, 0x1.f23b43863344cp-7, 0x1.a1e03132d0d04p-7, -0x1.4995d37a2b61p-6,
     -0x1.083065a145d27p-4, -0x1.2b40f29ab6c67p-4, -0x1.679bb342fc3c7p-5, -0x1.126e63db53437p-6,
     -0x1.5b6833330709dp-8, -0x1.05ae216da788bp-9, -0x1.06555e0a51d5dp-10, -0x1.2a92ae008b7e3p-11,
     -0x1.5c8780f900528p-12, -0x1.9393f58de234fp-13, -0x1.c48d2d307a4f4p-14,
     -0x1.d753df41d7d4ep-15},
    {0x1.7a72e72c14536p-7, 0x1.8b43d42595f06p-8, -0x1.64df655dc4fd7p-7, -0x1.e08cb54f02b8fp-6,
     -0x1.5baa4e7a9d00dp-6, 0x1.53f525dff5239p-7, 0x1.6243347174738p-6, 0x1.87648260d14d9p-7,
     0x1.f1579bc083bedp-9, 0x1.112015a35e422p-10, 0x1.934636fb85fep-12, 0x1.9ebfd3cca5ab9p-13,
     0x1.e0c5266354891p-14, 0x1.202becf02ea66p-14, 0x1.5ee8ed8e1ba4ap-15, 0x1.af13646bf0e23p-16},
    {0x1.6a9a6edf24e3ep-39, -0x1.7b90126a1ab43p-8, -0x1.64ac01382ad4dp-7, -0x1.4b9df0a49d5a7p-8,
     0x1.b8d1e65adc9d2p-7, 0x1.c619b4e7137d6p-7, -0x1.ebefe93351a03p-10, -0x1.76157f271edddp-8,
     -0x1.4a493b6ccb721p-9, -0x1.4fdcffe3a56d9p-11, -0x1.4774bc03e386cp-13, -0x1.ec3762e457312p-15,
     -0x1.0198ae1d87824p-15, -0x1.28a6162f6f8e5p-16, -0x1.60aea3b6dcf1cp-17,
     -0x1.ac4c1615a2558p-18},
    {-0x1.321102db0dc1p-9, -0x1.5b3f907e68f6cp-9, -0x1.cc2f12a34b38cp-11, 0x1.a381114c0968ap-8,
     0x1.a39b4eb324609p-8, -0x1.7cf98859cbb83p-8, -0x1.4349786382ad8p-8, 0x1.be2a1920f69f1p-11,
     0x1.4a7a1f5386cabp-10, 0x1.aa71038c92ebcp-12, 0x1.592bb8811da58p-14, 0x1.3e2df6373377bp-16,
     0x1.fd133996c4c41p-18, 0x1.0dc0db09de5f1p-18, 0x1.3232d02c9a18p-19, 0x1.65f61c985a2cap-20},
    {0x1.cbf68ec99007ep-31, -0x1.dedac52937a4dp-15, 0x1.c21e3a08c9abfp-10, 0x1.65bd78553f641p-9,
     -0x1.c97b536de856cp-9, -0x1.89ee726da033fp-9, 0x1.530238a01b45dp-9, 0x1.0a57562c42457p-10,
     -0x1.58a0cda1bad09p-12, -0x1.c39a057ada607p-13, -0x1.a0a8a2722b515p-15, -0x1.150956546d6efp-17,
     -0x1.0a288198f816ap-19, -0x1.cf70d2ca1d5a3p-21, -0x1.eca801114be45p-22, -0x1.12c822964cd4p-22},
    {-0x1.0c8b3470f7bd1p-13, 0x1.ac79f0f60795bp-13, 0x1.be0e3d43b4474p-11, -0x1.af6d8c2608556p-11,
     -0x1.0f00ae92b15dp-9, 0x1.23b7f569c8a1dp-9, 0x1.d06ef34dc2ae7p-12, -0x1.9e46d3b164dfcp-11,
     -0x1.779c9373c5119p-14, 0x1.451babd22988p-14, 0x1.cbb31075f60ddp-16, 0x1.341f6c5e5c8bfp-18,
     0x1.6c163aa9be118p-21, 0x1.94af24bb38711p-23, 0x1.7ade877d72ea2p-24, 0x1.9031e66477612p-25},
    {0x1.e5423cca08dc5p-25, 0x1.8e0affd08bdbdp-13, 0x1.d9af0eb370219p-16, -0x1.eadbfa073b63fp-11,
     0x1.a91a43a33889ep-11, 0x1.2eee6089dd9d2p-11, -0x1.d7dfa3f0e569ap-11, 0x1.1f2089736352dp-13,
     0x1.1d82622ddb0d9p-13, -0x1.f3e9d2cd56bbdp-18, -0x1.8d72020c8e81bp-17, -0x1.594ebb7035c8p-19,
     -0x1.5e5ad5b4e9d0bp-22, -0x1.a722e72521c24p-25, -0x1.2032a95f2c6bbp-26,
     -0x1.18f4dd0744c6bp-27},
    {0x1.84e4d5df1071fp-15, 0x1.6752c37da46d5p-15, -0x1.832876eacc0dap-13, -0x1.3c8309339ccc7p-14,
     0x1.66cf1bae2ee86p-11, -0x1.838c19982dd82p-11, 0x1.74f097d92217ep-13, 0x1.1f06db70af3d3p-13,
     -0x1.edc887bf5d066p-15, -0x1.8c91d7b6a844dp-17, 0x1.b05cbfc2924c8p-19, 0x1.4c8ad44dfb055p-20,
     0x1.80199badfa7c4p-23, 0x1.407070b6548cbp-26, 0x1.db11d82de6d84p-29, 0x1.81fb1437da83fp-30},
    {0x1.6fe6443411301p-21, -0x1.c74c49fd040c9p-17, -0x1.5bd906b5e85f8p-14, 0x1.cd2512ec31d8bp-13,
     -0x1.4b6c6fd71b7e5p-13, -0x1.596bcecdd6cd2p-14, 0x1.9200efe86f785p-13, -0x1.90ff0cf33bfa8p-14,
     0x1.7baa10ebe8a99p-20, 0x1.296ecb7dc8569p-17, 0x1.1d5790a19d334p-23, -0x1.ec0de3c6b69f6p-22,
     -0x1.905274ca6abe8p-24, -0x1.4b85272072749p-27, -0x1.0a8ba46446d99p-30,
     -0x1.0f254e530d13dp-32},
    {0x1.285c5b44cff12p-20, -0x1.93a968fe9c66ap-17, 0x1.df2306c2b1c95p-19, 0x1.692d067b94b35p-14,
     -0x1.b9adec391290ap-13, 0x1.cf95c4d57a98cp-13, -0x1.bcf0a77442f4fp-14, 0x1.3ae233ff88e13p-17,
     0x1.83b5515826104p-17, -0x1.795f912e5bb22p-19, -0x1.6377bf74b291p-21, 0x1.aeecff678fe1cp-24,
     0x1.585eb2bb65edp-25, 0x1.59274248af997p-28, 0x1.b6f5a12925c8cp-32, 0x1.b58434666dd38p-35},
};

/* (a + 4) exp(a^2) erfc(a), in pieces of 1 of 17.75 a / (a + 4) */
static const double fit_erfc[10][16] TNI_ALIGNED = {
    {0x1p+2, 0x1.a684c6d6cef6bp+1, 0x1.60eda16b5d109p+1, 0x1.2a7cb0b77ccf5p+1, 0x1.ff28b1b99b5e2p+0,
     0x1.baee4c9b6fed7p+0, 0x1.8427c2a229bd9p+0, 0x1.57b88fd9708bcp+0, 0x1.3349a06d1f003p+0,
     0x1.1517bad9cd9bbp+0, 0x1.f79bc52224197p-1, 0x1.ccd24142b986p-1, 0x1.a8470efae14edp-1,
     0x1.88c95db1cebcap-1, 0x1.6d6c881b8c41p-1, 0x1.55773baba4ee4p-1},
    {-0x1.9563fa9ef10fep-1, -0x1.3a8cd3b068517p-1, -0x1.eaa0da45011dp-2, -0x1.8137d080975e6p-2,
     -0x1.30ee0d27544e2p-2, -0x1.e742852f65c71p-3, -0x1.89439648378a6p-3, -0x1.40c7cd37e8e59p-3,
     -0x1.087bd43c478b8p-3, -0x1.b8cae50133f58p-4, -0x1.731d2f22c3a08p-4, -0x1.3b86c7da4d2c7p-4,
     -0x1.0ebfc5b7a1ddcp-4, -0x1.d4a93d4bdfa86p-5, -0x1.98dc6211fd04cp-5, -0x1.675138794c411p-5},
    {0x1.9e9cfdb035478p-4, 0x1.3c5c0202c9561p-4, 0x1.e1cab4d8e5c1fp-5, 0x1.6ec1b259b259p-5,
     0x1.179d29d325513p-5, 0x1.abc75be2f79f5p-6, 0x1.48e1adefdca59p-6, 0x1.fd04c33b38593p-7,
     0x1.8cfd295486095p-7, 0x1.3852f7b065edap-7, 0x1.f007cee08d787p-8, 0x1.8db49334fecbp-8,
     0x1.41f8e7aed556dp-8, 0x1.07284bc53dce1p-8, 0x1.b22a32cb22f8dp-9, 0x1.695491d378c4dp-9},
    {-0x1.294cfe056d06dp-7, -0x1.ca8bddc18e5d9p-8, -0x1.5eb2cc42d2446p-8, -0x1.0a5ed3b6ede13p-8,
     -0x1.9284db0bd4b64p-9, -0x1.2f186ee05c7b6p-9, -0x1.c7cfd6499b89dp-10, -0x1.56f1114e417eep-10,
     -0x1.02ad4687ab9dfp-10, -0x1.87eb6f7019eacp-11, -0x1.2aa21836be68fp-11, -0x1.ca51983aeab94p-12,
     -0x1.627f57b07b79cp-12, -0x1.148a4a7d7a6fp-12, -0x1.b347b55daee04p-13, -0x1.59a3a9b2fb045p-13},
    {0x1.2f93de47b3229p-11, 0x1.e4947a073a10ep-12, 0x1.7d569e7e578bp-12, 0x1.28293631610acp-12,
     0x1.c68cd93d9f4f3p-13, 0x1.5937060160e25p-13, 0x1.03f340d1ef775p-13, 0x1.84fb7aa6e2036p-14,
     0x1.21d2c89bf3a4fp-14, 0x1.af163a9136ba3p-15, 0x1.40b9e51e82806p-15, 0x1.de661dc8e5979p-16,
     0x1.664b527d7f5e2p-16, 0x1.0ddc2ca03961p-16, 0x1.99412a3dc3b47p-17, 0x1.38aa84a735444p-17},
    {-0x1.a7ffd3e592808p-16, -0x1.68cbdfbd262c9p-16, -0x1.2ca3345032a6cp-16, -0x1.eae8860093cd7p-17,
     -0x1.89102984018cp-17, -0x1.35073ef342ab1p-17, -0x1.dde810a7d983ep-18, -0x1.6c2c3357b48b4p-18,
     -0x1.121ee61ff7f9p-18, -0x1.98b4a58dda932p-19, -0x1.2e963ade13f6bp-19, -0x1.be2fdc8013efbp-20,
     -0x1.4876ad7eae392p-20, -0x1.e3ffb7f5d851fp-21, -0x1.659ad77dbb4bbp-21,
     -0x1.0966fe560f39cp-21},
    {0x1.54f70e2b7d959p-21, 0x1.4af501305e159p-21, 0x1.3503b735db4f9p-21, 0x1.167757b3e58a9p-21,
     0x1.e59df2fd19495p-22, 0x1.9aa4c0c591e91p-22, 0x1.5184952cfa746p-22, 0x1.0e4dc005afe26p-22,
     0x1.a702cf0e4cb11p-23, 0x1.4463d8c29d7d5p-23, 0x1.e93abaa003aaep-24, 0x1.6c0b41f1865bdp-24,
     0x1.0c42b886ed4abp-24, 0x1.88d92f570bacep-25, 0x1.1eb63365dbb24p-25, 0x1.a244a701eb95cp-26},
    {-0x1.be63cbad0a7eep-31, -0x1.2da3d101b06c4p-28, -0x1.ea9006fa36e18p-28, -0x1.33edd0151ff63p-27,
     -0x1.530cd79c9aaeep-27, -0x1.5632388c69a44p-27, -0x1.4346c0a3da235p-27, -0x1.215b02bb2e8fdp-27,
     -0x1.eedecf255974ap-28, -0x1.96f6c9ff0ddc8p-28, -0x1.43bba839d46dbp-28, -0x1.f4f4bc4f49a23p-29,
     -0x1.7afdf283c7a1p-29, -0x1.19c64ca1b60c5p-29, -0x1.9db3e263a0b16p-30, -0x1.2d241261611fap-30},
    {-0x1.0eaf12e41b52cp-31, -0x1.b60d19c869ca4p-32, -0x1.3b30e9b7763a1p-32, -0x1.74733aac578aep-33,
     -0x1.057ca5dbefdbdp-34, 0x1.1ed3783ceb371p-35, 0x1.b94748536b123p-34, 0x1.37d981dded24fp-33,
     0x1.5e2ed1bff15c5p-33, 0x1.5abd9edc9aac9p-33, 0x1.3b4fb5944be76p-33, 0x1.0d206836eb13dp-33,
     0x1.b56efd71c12b3p-34, 0x1.562cb3a8f1f8ep-34, 0x1.03ea2e3aceb3fp-34, 0x1.824d0be5ab86p-35},
    {0x1.535e6a540d3c5p-37, 0x1.988576abfe761p-37, 0x1.c8943401e9413p-37, 0x1.c3f1be68ebf6ep-37,
     0x1.9058e7307d674p-37, 0x1.3aeafc136e898p-37, 0x1.aa27ce7777ecep-38, 0x1.c1c658ed210dep-39,
     0x1.b023b86b508d1p-41, -0x1.19d8dd542b1aap-40, -0x1.228560fff691ap-39, -0x1.61ec79163ee3fp-39,
     -0x1.62c5676d78c93p-39, -0x1.3e435a313d409p-39, -0x1.093db975b4c6cp-39,
     -0x1.a3bb4125c873ap-40},
};

#endif
