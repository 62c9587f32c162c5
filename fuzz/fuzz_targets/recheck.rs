//! Certificates of random claims, given to Z3 again as text
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("recheck", data));
