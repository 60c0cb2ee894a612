// builtin attributes
module attributes {t.a = 0xFFFFFFFF : f32, t.c = dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>, t.d = dense<[-1, 3]> : tensor<2xi4>} {
}
// -----
// dlti
module attributes {dlti.dl_spec = #dlti.dl_spec<"dlti.endianness" = "little", i64 = dense<64> : vector<2xi64>, !llvm.ptr<3> = dense<32> : vector<4xi64>, index = 32 : i32, f80 = dense<128> : vector<2xi64>, "dlti.stack_alignment" = 128 : i64>, t.dl = #dlti.target_system_spec<"CPU" = #dlti.target_device_spec<"L1" = 4 : ui32>>, t.m = #dlti.map<"a" = 1 : i32>} {
}
// -----
// dlti in the older spelling, and both in one
module attributes {dlti.dl_spec = #dlti.dl_spec<#dlti.dl_entry<"dlti.endianness", "little">, index = 32 : i32, #dlti.dl_entry<!llvm.ptr<3>, dense<32> : vector<4xi64>>>, t.e = #dlti.dl_entry<index, 32 : i32>, t.s = #dlti.dl_spec<>, t.dl = #dlti.target_system_spec<"CPU" = #dlti.target_device_spec<#dlti.dl_entry<"L1", 4 : ui32>>>, t.m = #dlti.map<#dlti.dl_entry<"a", 1 : i32>>} {
}
// -----
// distinct attributes
module attributes {t.x = distinct[7]<42 : i32>, t.y = [distinct[0]<>, distinct[7]<42 : i32>]} {
}
