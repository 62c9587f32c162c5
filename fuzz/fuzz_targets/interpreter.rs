//! A program, its versions after every pass, and versions that trap: the fast interpreter against the reference interpreter.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("interpreter", data));
