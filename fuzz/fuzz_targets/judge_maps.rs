//! The judge's verdicts on index maps against every point tried.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("judge_maps", data));
