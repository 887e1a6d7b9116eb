/* SPDX-License-Identifier: MIT */
/* cpu/kern/fits32.h: polynomials for functions of float32. Made by tools/fit_maths.py. */
#ifndef TNI_CPU_KERN_FITS32_H
#define TNI_CPU_KERN_FITS32_H

/* Tables that registers are loaded from. */
#ifndef TNI_ALIGNED
#    define TNI_ALIGNED __attribute__((aligned(64)))
#endif

/* erf, in pieces of 17/64 */
static const float fit32_erf[7][16] TNI_ALIGNED = {
    {0x0p+0f, 0x1.2bd9dcp-2f, 0x1.1855a6p-1f, 0x1.7b0058p-1f, 0x1.bbef1p-1f, 0x1.e11a3ep-1f,
     0x1.f39bc2p-1f, 0x1.fb9f6p-1f, 0x1.fea422p-1f, 0x1.ffa14ap-1f, 0x1.ffe96ap-1f, 0x1.fffb4ap-1f,
     0x1.ffff24p-1f, 0x1.ffffdep-1f, 0x1.fffffcp-1f, 0x1p+0f},
    {0x1.06eba8p-3f, 0x1.0d2fa6p+0f, 0x1.b3aafcp-1f, 0x1.32281ep-1f, 0x1.75a91cp-2f, 0x1.8c0732p-3f,
     0x1.6c7e64p-4f, 0x1.2351c2p-5f, 0x1.94624cp-7f, 0x1.e7744ap-9f, 0x1.fe41dcp-11f,
     0x1.cfd4ccp-13f, 0x1.6e23aep-15f, 0x1.f5f898p-18f, 0x1.2acfb2p-20f, 0x1.34ee6p-23f},
    {-0x1.475edep-25f, -0x1.1e0298p-2f, -0x1.cee5acp-2f, -0x1.e7eff2p-2f, -0x1.8d03aep-2f,
     -0x1.06fcc8p-2f, -0x1.2274b8p-3f, -0x1.0ed602p-4f, -0x1.ada87p-6f, -0x1.23547ep-7f,
     -0x1.52d7b2p-9f, -0x1.52d06p-11f, -0x1.23c454p-13f, -0x1.b15758p-16f, -0x1.15ccd2p-18f,
     -0x1.33b9p-21f},
    {-0x1.812666p-2f, -0x1.34435ep-2f, -0x1.fa04dp-4f, 0x1.b8dafep-5f, 0x1.3952aep-3f,
     0x1.4db286p-3f, 0x1.efba44p-4f, 0x1.1f2d1cp-4f, 0x1.0ea588p-5f, 0x1.a7af3ap-7f, 0x1.16be78p-8f,
     0x1.36a156p-10f, 0x1.26af44p-12f, 0x1.ddb5dap-15f, 0x1.4bb9c4p-17f, 0x1.8b81eap-20f},
    {-0x1.c539d2p-14f, 0x1.1084dp-3f, 0x1.77cc78p-3f, 0x1.196172p-3f, 0x1.88e97ep-5f,
     -0x1.722198p-6f, -0x1.92c712p-5f, -0x1.61680ap-5f, -0x1.afe846p-6f, -0x1.995614p-7f,
     -0x1.39bfc8p-8f, -0x1.8d5facp-10f, -0x1.a5129cp-12f, -0x1.7857b6p-14f, -0x1.1d4e56p-16f,
     -0x1.70688p-19f},
    {0x1.d4a228p-4f, 0x1.3624b6p-4f, -0x1.bb773ap-10f, -0x1.e63d68p-5f, -0x1.0de714p-4f,
     -0x1.2e083ep-5f, -0x1.515388p-8f, 0x1.650116p-7f, 0x1.978e16p-7f, 0x1.088064p-7f,
     0x1.f6386cp-9f, 0x1.771c4ep-10f, 0x1.c778bap-12f, 0x1.c9ad18p-14f, 0x1.80d6ep-16f,
     0x1.10d0a4p-18f},
    {-0x1.5b2c9ep-7f, -0x1.528518p-5f, -0x1.8be486p-5f, -0x1.5532d2p-6f, 0x1.555452p-7f,
     0x1.6b236ep-6f, 0x1.017304p-6f, 0x1.34a766p-8f, -0x1.cf0fa4p-10f, -0x1.930b9ap-9f,
     -0x1.12eaf4p-9f, -0x1.010e5ep-10f, -0x1.7041fap-12f, -0x1.a6779cp-14f, -0x1.8d228cp-16f,
     -0x1.362828p-18f},
};

#endif
