//! A program in the interpreter, before and after every pass.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("passes", data));
