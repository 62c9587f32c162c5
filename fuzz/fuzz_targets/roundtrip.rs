//! What is printed is read as the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("roundtrip", data));
