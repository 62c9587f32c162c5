//! The judge against one without a memo that may not enumerate points
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("second_judge", data));
