//! The judge's verdicts on tiled layouts, and on two layouts of the same data, against pad, reshape, transpose on an array of
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("judge_layouts", data));
