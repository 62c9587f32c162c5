//! Claims about pairs written by hand, and about random changes of them
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("claims", data));
