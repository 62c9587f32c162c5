//! What is proved of definitions against runs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("lifting", data));
