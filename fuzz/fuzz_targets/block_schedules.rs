//! Steps of random schedules on blocks, judged, and runs of the programs before and after them
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("block_schedules", data));
