use pleiad_model::json;

use super::DistinctHash;

/// Computed by Microsoft.Azure.Cosmos 3.64.0; 3.37.0 computes the same.
const VECTORS: &[(&str, u64, u64)] = &[
    (r#"[]"#, 0xA2EF_3CA3_5953_8082, 0x7D54_F729_FF4A_63FF),
    (r#"{}"#, 0x1438_743E_80B9_65D8, 0x14B8_6A60_AA01_A738),
    (r#"[null]"#, 0x2F80_EA62_35FB_6E41, 0x3E8E_8C77_4723_3835),
    (r#"[false]"#, 0xD3E8_BABB_1478_F746, 0x7A84_EFC2_656D_EC53),
    (r#"[true]"#, 0x53AC_0489_A1D9_BCDA, 0x2C8B_2AA5_96D4_67DD),
    (r#"[0]"#, 0x0A56_3AFF_DA21_4C18, 0xAF2D_056E_3B38_3527),
    (r#"[-0.0]"#, 0x128F_9CCF_16D9_9D05, 0xB643_E666_70B0_2C47),
    (r#"[1]"#, 0x2BCF_2DB1_B95F_9019, 0xC72F_3299_FDC3_E304),
    (r#"[1.0]"#, 0x2BCF_2DB1_B95F_9019, 0xC72F_3299_FDC3_E304),
    (r#"[1.5]"#, 0xB65D_E92F_910F_660C, 0x76FC_73C3_78E5_A07F),
    (r#"[-7]"#, 0x4B7F_6EF9_5C6C_AAE5, 0xAEC6_098E_143F_B12C),
    (r#"[9007199254740993]"#, 0xFB27_0EFE_2D01_6EE5, 0xB785_6820_19B5_EC58),
    (r#"[9223372036854775807]"#, 0x9F67_7514_5697_9EA8, 0xF538_7ABB_A2DA_79EE),
    (r#"[123456789012345678]"#, 0xE7B0_F2DF_A501_F233, 0x7FF4_7D3E_BA26_D358),
    (r#"[-9223372036854775808]"#, 0xF4E0_F353_423E_61A6, 0x9B0A_33A8_45AC_9DDB),
    (r#"[18446744073709551615]"#, 0x40E9_8341_6794_84F9, 0x2468_BE05_02A6_2405),
    (r#"[1e300]"#, 0xC8BB_3D43_3C36_145C, 0x36E8_4F94_966C_42F9),
    (r#"[5e-324]"#, 0x99E5_522F_FD8A_806F, 0x32BD_C3B2_676D_DC61),
    (r#"[""]"#, 0xC6C1_0009_D132_82C9, 0xD6F6_60BA_AF7C_0E88),
    (r#"["a"]"#, 0x30D7_3DBE_6068_CF09, 0xD937_2F83_F33C_F995),
    (r#"["hello, world, which is longer than sixteen bytes"]"#, 0x2734_084A_E13C_D255, 0xA1E0_A23D_677B_0984),
    (r#"["é€😀"]"#, 0x99E9_E7EB_0FDD_8C8E, 0xA589_0321_5E01_F391),
    (r#"["a\u0000b\"\n"]"#, 0x5AAD_417C_C611_240F, 0x5B4B_BA7A_56ED_6D33),
    (r#"[[]]"#, 0x58EC_3985_4AEE_937C, 0x5166_7C83_CA3C_85E9),
    (r#"[{}]"#, 0x4402_C435_A1CB_5A28, 0xE244_686B_A6F0_955D),
    (r#"[[1],[2,3]]"#, 0xAE6A_5A26_CCBF_30F6, 0x0501_A525_9A06_60B5),
    (r#"[true,false,true]"#, 0xB988_C475_93B2_F91F, 0x6FC2_6F30_B388_883A),
    (r#"[true,true,false]"#, 0x3ECB_BF0D_D1D1_FAF6, 0x0B46_DECA_184C_2098),
    (r#"{"a":1}"#, 0x5BF6_D7AA_BB4D_67E7, 0x2EF0_A91A_C12E_3225),
    (r#"{"a":null}"#, 0x8C9E_C5D8_D142_3E83, 0x7F05_01FA_911A_EC75),
    (r#"{"a":1,"b":2}"#, 0x53BB_2882_1133_53BB, 0x2DD0_A6CE_BD7B_9BDF),
    (r#"{"b":2,"a":1}"#, 0x53BB_2882_1133_53BB, 0x2DD0_A6CE_BD7B_9BDF),
    (r#"{"a":{"b":[1,"x",null]},"é":"ü"}"#, 0xA481_A579_7FC3_CF0C, 0xC8B8_CE61_4BA8_6E79),
    (r#"{"x":{},"y":[]}"#, 0x0727_5C1E_8E8E_ABC6, 0x8CC3_8BA3_F759_8552),
    (r#"[9007199254740992]"#, 0x3D5D_8A2C_5CB5_9830, 0xB42F_5A7B_F6FA_FCBB),
    (r#"[-9007199254740993]"#, 0x47DD_5E3E_171D_62FD, 0x5A8D_BDEF_37EC_BDE1),
    (r#"[9007199254740995]"#, 0x1771_3B69_2755_0B03, 0x8F3E_A933_AAA7_B876),
    (r#"[9223372036854775806]"#, 0xE2B2_013E_0A1B_8E9E, 0x4F74_89CD_EAB2_76A4),
    (r#"[1152921504606846977]"#, 0x5BA6_5CE6_C476_9F52, 0xC7E1_F700_2BD2_B904),
    (r#"[1e22]"#, 0xC518_5AD5_9966_4BCE, 0x4746_90D7_C649_E17B),
    (r#"[123456789012345680000]"#, 0xBCFF_E032_F749_F07E, 0x1248_FE6F_09E8_E1DE),
    (r#"[0.1]"#, 0x45A9_EB7F_CCA5_0E7E, 0xB8E5_E7E1_C89C_DB5B),
    (r#"[-1.5e-7]"#, 0xA16F_0923_84BA_544B, 0x6533_9A64_F7B5_FB8F),
    (r#"[3.0e0]"#, 0xF37E_7261_B547_5E54, 0x040D_6306_1E27_A6AA),
    (r#""a""#, 0xF60D_2C85_1D94_389C, 0x0737_0642_DBBB_18E0),
    (r#"1"#, 0x4B69_6D17_9E4D_047C, 0xC598_A47F_2259_F36C),
    (r#"null"#, 0x9E24_D6AE_6653_417D, 0x898E_FBF2_680D_AEA3),
    (r#"true"#, 0xF019_C3E4_A55C_0125, 0xCD4D_51AB_869F_071F),
];

#[test]
fn the_sdk_computes_the_same_hashes() {
    for (text, low, high) in VECTORS {
        let hash = DistinctHash::of(&json::parse(text.as_bytes()).unwrap());
        assert_eq!((hash.low, hash.high), (*low, *high), "{text}");
    }
}

/// The SDK says: `[null] < [false] < [true]`, but `[true] > [0]`, and `[1.5] > [1]`.
#[test]
fn hashes_compare_as_in_the_sdk() {
    let bytes = |text: &str| DistinctHash::of(&json::parse(text.as_bytes()).unwrap()).to_bytes();
    for (less, more) in [("[null]", "[false]"), ("[false]", "[true]"), ("[0]", "[true]"), ("[1.5]", "[1.0]")] {
        assert!(bytes(less) < bytes(more), "{less} < {more}");
    }
}
