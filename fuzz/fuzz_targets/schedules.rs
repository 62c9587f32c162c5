//! TE programs with random schedules, lowered, judged and run, against their definition
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("schedules", data));
