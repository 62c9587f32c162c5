//! Certificates are accepted, and every mutation of one rejected.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("certificate", data));
