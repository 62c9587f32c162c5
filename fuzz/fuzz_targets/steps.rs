//! What the judge says of steps that read their results or work in place, against the accesses of tiny programs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("steps", data));
