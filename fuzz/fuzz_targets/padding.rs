//! A program after every pass, run with other values in the padding of its arguments: the result does not depend on them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("padding", data));
