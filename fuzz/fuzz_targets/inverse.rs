//! There and back: a map and its inverse at every point, tensors packed and unpacked, one layout to another and back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("inverse", data));
