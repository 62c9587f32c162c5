//! What blocks of S-TIR say of themselves, judged, and what they do, against every iteration
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("blocks", data));
