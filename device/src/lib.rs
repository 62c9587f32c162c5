//! tilewright-device
