/* SPDX-License-Identifier: MIT */
/* cpu/kern/fits32.h: polynomials for functions of float32. Made by tools/fit_maths.py. */
#ifndef TNI_CPU_KERN_FITS32_H
#define TNI_CPU_KERN_FITS32_H

/* Tables that registers are loaded from. */
#ifndef TNI_ALIGNED
#    define TNI_ALIGNED __attribute__((aligned(64)))
#endif

/* erf(x) / x - 1 for z = x^2, x up to 1/2 */
static const float fit32_erf_near[5] = {
    0x1.06eba8p-3f, -0x1.812732p-2f, 0x1.ce251ep-4f, -0x1.b6677ep-6f, 0x1.35501p-8f,
};

/* erf, in pieces of 15/64 about 1/2 and more */
static const float fit32_erf[7][16] TNI_ALIGNED = {
    {0x1.0a7ef6p-1f, 0x1.66e86cp-1f, 0x1.a89c86p-1f, 0x1.d281c4p-1f, 0x1.ea773p-1f, 0x1.f6c0dcp-1f,
     0x1.fc67bcp-1f, 0x1.febc96p-1f, 0x1.ff996p-1f, 0x1.ffe2a2p-1f, 0x1.fff86cp-1f, 0x1.fffe3ep-1f,
     0x1.ffffa2p-1f, 0x1.ffffeep-1f, 0x1.fffffep-1f, 0x1p+0f},
    {-0x1.8364bap-27f, 0x1.de42c6p-26f, -0x1.e7dc4p-26f, 0x1.56513cp-26f, 0x1.f758dp-26f,
     -0x1.766898p-26f, 0x1.e9fa0ep-26f, -0x1.ec3fcap-26f, 0x1.e387aap-26f, -0x1.a4515cp-27f,
     0x1.f8bb8ep-26f, -0x1.573074p-27f, -0x1.0cb8c6p-28f, 0x1.33db96p-27f, -0x1.fc1efp-26f,
     -0x1.d1a9f8p-27f},
    {0x1.c1efccp-1f, 0x1.50e79ep-1f, 0x1.c40b08p-2f, 0x1.0fb662p-2f, 0x1.24a7b8p-3f, 0x1.1a6a94p-4f,
     0x1.e85c42p-6f, 0x1.7a4f6ap-7f, 0x1.06918cp-8f, 0x1.468db4p-10f, 0x1.6be034p-12f,
     0x1.6b472cp-14f, 0x1.44f266p-16f, 0x1.046b4ep-18f, 0x1.75fb7ap-21f, 0x1.e130bep-24f},
    {-0x1.c1ee68p-2f, -0x1.eed362p-2f, -0x1.b5eab6p-2f, -0x1.46e7fap-2f, -0x1.a4b244p-3f,
     -0x1.d82b92p-4f, -0x1.d178a2p-5f, -0x1.94e81ep-6f, -0x1.37ca14p-7f, -0x1.aa0498p-9f,
     -0x1.02a85cp-10f, -0x1.177ep-12f, -0x1.0d01d6p-14f, -0x1.cd9dd2p-17f, -0x1.614bccp-19f,
     -0x1.e2a3ap-22f},
    {-0x1.2bfb1cp-3f, 0x1.1a63bep-6f, 0x1.08461ep-3f, 0x1.5744p-3f, 0x1.319d1p-3f, 0x1.b0226ap-4f,
     0x1.fe25ep-5f, 0x1.0165c4p-5f, 0x1.c1ebd6p-7f, 0x1.575a2cp-8f, 0x1.cc1518p-10f,
     0x1.0fa908p-11f, 0x1.1b8644p-13f, 0x1.06129ep-15f, 0x1.adccf2p-18f, 0x1.3910b2p-20f},
    {0x1.74d856p-3f, 0x1.3bb434p-3f, 0x1.47f4b6p-4f, 0x1.889c06p-8f, -0x1.3a281cp-5f,
     -0x1.959a1cp-5f, -0x1.4a8ca4p-5f, -0x1.a0b00cp-6f, -0x1.b071ccp-7f, -0x1.7c1a94p-8f,
     -0x1.1f674cp-9f, -0x1.797e0cp-11f, -0x1.b16c4ap-13f, -0x1.b4fe72p-15f, -0x1.84327ap-17f,
     -0x1.309d4p-19f},
    {0x1.08080ep-7f, -0x1.99280cp-5f, -0x1.1be3fp-4f, -0x1.b0f406p-5f, -0x1.71efdap-6f,
     0x1.7ced7p-10f, 0x1.897aa4p-7f, 0x1.92064ap-7f, 0x1.11f68ap-7f, 0x1.23aaa6p-8f, 0x1.000d16p-9f,
     0x1.7c746ap-11f, 0x1.e58314p-13f, 0x1.0c918cp-14f, 0x1.033db4p-16f, 0x1.b6ac18p-19f},
};

/* exp(a^2) erfc(a), in pieces of a + 3/4, from 3/4 to 12; the first row has 12 bits */
static const float fit32_erfc[8][16] TNI_ALIGNED = {
    {0x1.494p-2f, 0x1.058p-2f, 0x1.afcp-3f, 0x1.6eap-3f, 0x1.2a2p-3f, 0x1.dc6p-4f, 0x1.8c2p-4f,
     0x1.52cp-4f, 0x1.162p-4f, 0x1.c0cp-5f, 0x1.ddcp-1f, 0x1.a36p-1f, 0x1.5f2p-1f, 0x1.1d2p-1f,
     0x1.db8p-2f, 0x1.954p-2f},
    {0x1.b5ff54p-15f, 0x1.9c6d5p-16f, -0x1.30312p-17f, -0x1.f60b74p-17f, 0x1.5e339p-16f,
     0x1.d1f496p-23f, -0x1.7f6c64p-17f, -0x1.fcae7p-18f, -0x1.c10e2p-18f, 0x1.736528p-18f,
     0x1.a6b398p-14f, 0x1.776fe6p-14f, 0x1.15bc7cp-14f, -0x1.294fecp-14f, -0x1.70237ep-15f,
     -0x1.c3ec9ep-15f},
    {-0x1.4f198ap-3f, -0x1.b57036p-4f, -0x1.3086d8p-4f, -0x1.bd6ae6p-5f, -0x1.2aa656p-5f,
     -0x1.81149ep-6f, -0x1.0bc46ep-6f, -0x1.8914e8p-7f, -0x1.09d8b4p-7f, -0x1.5b05ap-8f,
     -0x1.0300a2p+0f, -0x1.a47284p-1f, -0x1.3a5c68p-1f, -0x1.babd0ep-2f, -0x1.4369f6p-2f,
     -0x1.e78b36p-3f},
    {0x1.37ea26p-4f, 0x1.5672bap-5f, 0x1.98958ap-6f, 0x1.043fe2p-6f, 0x1.22f068p-7f, 0x1.317c16p-8f,
     0x1.653504p-9f, 0x1.c39a4ap-10f, 0x1.f8c38ap-11f, 0x1.0b1a44p-11f, 0x1.bd6d22p-1f,
     0x1.549642p-1f, 0x1.d28c0ep-2f, 0x1.257742p-2f, 0x1.80ef9p-3f, 0x1.05e726p-3f},
    {-0x1.0dc052p-5f, -0x1.fa97e4p-7f, -0x1.063054p-7f, -0x1.258f2cp-8f, -0x1.142abcp-9f,
     -0x1.dc12b6p-11f, -0x1.d65eaap-12f, -0x1.00e38ap-12f, -0x1.dbe19ap-14f, -0x1.994bbp-15f,
     -0x1.46c6d8p-1f, -0x1.db72fap-2f, -0x1.2e81a8p-2f, -0x1.59c256p-3f, -0x1.9d577ep-4f,
     -0x1.0133ccp-4f},
    {0x1.b655a4p-7f, 0x1.648e4cp-8f, 0x1.435aa8p-9f, 0x1.409bd2p-10f, 0x1.ffe1d2p-12f,
     0x1.6cbbb8p-13f, 0x1.31db62p-14f, 0x1.217f2ap-15f, 0x1.bdc0cp-17f, 0x1.3838cap-18f,
     0x1.a900b4p-2f, 0x1.280378p-2f, 0x1.611adcp-3f, 0x1.72d434p-4f, 0x1.98318p-5f, 0x1.d4e6c8p-6f},
    {-0x1.560732p-8f, -0x1.e57e14p-10f, -0x1.8401c6p-11f, -0x1.5649ccp-12f, -0x1.d9b6aep-14f,
     -0x1.17102ep-15f, -0x1.8d51c6p-17f, -0x1.45f09ep-18f, -0x1.a8ab4cp-20f, -0x1.e1bf7ap-22f,
     -0x1.f68a5ep-3f, -0x1.508cbep-3f, -0x1.7c7efap-4f, -0x1.71da2ep-5f, -0x1.7971bap-6f,
     -0x1.92c07ap-7f},
    {0x1.f3f1d2p-10f, 0x1.397ba6p-11f, 0x1.bde732p-13f, 0x1.60a8f8p-14f, 0x1.a354e4p-16f,
     0x1.9dd358p-18f, 0x1.f8532ep-20f, 0x1.688d12p-21f, 0x1.886e44p-23f, 0x1.6c3102p-25f,
     0x1.112c44p-3f, 0x1.610e18p-4f, 0x1.79c95ep-5f, 0x1.56767p-6f, 0x1.46466ep-7f, 0x1.45745ep-8f},
};

/* erfinv(x) / x, in pieces of w + 5/4, from 5/4 to 20, for w = -log(1 - x^2); the first row has 12
 * bits */
static const float fit32_erfinv[7][16] TNI_ALIGNED = {
    {0x1.20ap+0f, 0x1.408p+0f, 0x1.60ap+0f, 0x1.806p+0f, 0x1.afp+0f, 0x1.ea6p+0f, 0x1.11p+1f,
     0x1.2bp+1f, 0x1.4fp+1f, 0x1.7a6p+1f, 0x1.a1ap+1f, 0x1.c5cp+1f, 0x1.f78p+1f, 0x1.d4ap-1f,
     0x1.f3p-1f, 0x1.09p+0f},
    {-0x1.19123ap-14f, 0x1.d05fe8p-14f, -0x1.da5d64p-13f, -0x1.d18198p-15f, -0x1.fa6cc4p-17f,
     -0x1.dc87acp-14f, -0x1.b2e338p-16f, 0x1.07e038p-17f, -0x1.4b5ep-13f, -0x1.00af54p-12f,
     0x1.b32be6p-14f, 0x1.5148bep-12f, -0x1.fee8e2p-13f, 0x1.fcc35p-14f, 0x1.fd85bcp-14f,
     0x1.76238p-18f},
    {0x1.fb8fccp-3f, 0x1.005f04p-2f, 0x1.ff8666p-3f, 0x1.f91e8ap-3f, 0x1.e8afc2p-3f, 0x1.cc365ap-3f,
     0x1.ae47b8p-3f, 0x1.9256cep-3f, 0x1.6e73aep-3f, 0x1.49268p-3f, 0x1.2cc806p-3f, 0x1.167fc8p-3f,
     0x1.f9433ep-4f, 0x1.e0d9e6p-3f, 0x1.ead72cp-3f, 0x1.f2f1bep-3f},
    {0x1.16933ap-8f, 0x1.cd419ap-11f, -0x1.01f794p-9f, -0x1.11c3a2p-8f, -0x1.9c7e9ep-8f,
     -0x1.e0808p-8f, -0x1.d47dp-8f, -0x1.a6bef4p-8f, -0x1.579a8ap-8f, -0x1.022992p-8f,
     -0x1.8f163ap-9f, -0x1.3ec68ep-9f, -0x1.de961p-10f, 0x1.5d644ep-7f, 0x1.21a5bap-7f,
     0x1.c9eb3ap-8f},
    {-0x1.3779bcp-9f, -0x1.123ef4p-9f, -0x1.bb9666p-10f, -0x1.48640cp-10f, -0x1.54925ep-11f,
     -0x1.8cdf94p-14f, 0x1.7379bp-13f, 0x1.17b50ap-12f, 0x1.0a7f28p-12f, 0x1.79b0c4p-13f,
     0x1.fff792p-14f, 0x1.64b7b4p-14f, 0x1.bd8518p-15f, -0x1.397e7ap-9f, -0x1.427698p-9f,
     -0x1.4395e8p-9f},
    {0x1.a2437cp-14f, 0x1.738b8ap-13f, 0x1.c3e5aep-13f, 0x1.c90858p-13f, 0x1.7401p-13f,
     0x1.a4b31ep-14f, 0x1.5739b4p-15f, 0x1.1c39a2p-17f, -0x1.06d57cp-17f, -0x1.249b12p-17f,
     -0x1.856d08p-18f, -0x1.e95bf6p-19f, -0x1.0308p-19f, -0x1.9d0f68p-14f, -0x1.414a6cp-15f,
     0x1.5a05e6p-16f},
    {0x1.401d2p-15f, 0x1.87226ap-16f, 0x1.00a50ep-17f, -0x1.4a189cp-18f, -0x1.e8748ep-17f,
     -0x1.e7abdep-17f, -0x1.2f822ep-17f, -0x1.1efcc6p-18f, -0x1.b4726cp-21f, 0x1.1bebaep-22f,
     0x1.1f6aa2p-22f, 0x1.664e28p-23f, 0x1.4c277ep-24f, 0x1.909ba4p-15f, 0x1.935a74p-15f,
     0x1.801b04p-15f},
};

/* (tan(r) / r - 1) / z for z = r^2, r up to pi / 4 */
static const float fit32_tan[7] = {
    0x1.555562p-2f, 0x1.110d46p-3f, 0x1.bae7a4p-5f, 0x1.5c3deep-6f,
    0x1.653f44p-7f, 0x1.4075bp-17f, 0x1.21448cp-8f,
};

/* (log(1 + m) - m) / m^2 for 1 + m from sqrt(1/2) to sqrt 2 */
static const float fit32_log[9] = {
    -0x1.fffff8p-2f, 0x1.555544p-2f,  -0x1.0003fep-2f, 0x1.99a968p-3f,  -0x1.543242p-3f,
    0x1.22115cp-3f,  -0x1.0e8436p-3f, 0x1.0a56e2p-3f,  -0x1.407204p-4f,
};

/* 2^(j/16), of 12 bits */
static const float fit32_roots[16] TNI_ALIGNED = {
    0x1p+0f,     0x1.0b6p+0f, 0x1.172p+0f, 0x1.238p+0f, 0x1.306p+0f, 0x1.3dep+0f,
    0x1.4cp+0f,  0x1.5acp+0f, 0x1.6ap+0f,  0x1.7a2p+0f, 0x1.8acp+0f, 0x1.9c4p+0f,
    0x1.ae8p+0f, 0x1.c1ap+0f, 0x1.d58p+0f, 0x1.ea4p+0f,
};

/* the rest */
static const float fit32_roots_low[16] TNI_ALIGNED = {
    0x0p+0f,         -0x1.4f260cp-13f, 0x1.7078fap-13f,  0x1.e9b9d6p-14f,
    0x1.fc1464p-13f, 0x1.4c9824p-13f,  -0x1.29564ep-15f, -0x1.f0457p-13f,
    0x1.3cccfep-13f, -0x1.d7182ap-13f, 0x1.ca8456p-13f,  0x1.230548p-13f,
    0x1.3f32b6p-13f, -0x1.9089eap-14f, 0x1.8dcfbap-16f,  0x1.5f454ap-13f,
};

#endif
