//! The race check and runs on threads against all orders of tiny programs
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("interleavings", data));
