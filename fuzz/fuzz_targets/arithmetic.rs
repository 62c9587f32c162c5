//! The interpreter's operators, one at a time and on whole vectors of operands, against arithmetic that is written down here
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("arithmetic", data));
