//! Programs written by hand and changes of them, before and after passes
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("written_passes", data));
