//! Lossless forms of bytes and floats in JSON: bytes as hexadecimal digits, floats as their bits, because JSON has no NaN.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The bytes as lower-case hexadecimal digits, two for each byte.
fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// The inverse of [`encode`]; `None` for any other text.
fn decode(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pairs = text.as_bytes().chunks(2).map(|pair| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    });
    pairs.collect()
}

/// As [`decode`], with an error for serde.
fn bytes<E: serde::de::Error>(text: &str) -> Result<Vec<u8>, E> {
    decode(text).ok_or_else(|| E::custom("expected hexadecimal digits, two a byte"))
}

/// Bytes as hexadecimal digits.
pub(crate) mod hex {
    use super::{Deserialize, Deserializer, Serializer, bytes, encode};

    pub(crate) fn serialize<S: Serializer>(value: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&encode(value))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        bytes(&String::deserialize(from)?)
    }
}

/// A list of byte strings.
pub(crate) mod hex_list {
    use super::{Deserialize, Deserializer, Serializer, bytes, encode};

    pub(crate) fn serialize<S: Serializer>(value: &[Vec<u8>], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(value.iter().map(|bytes| encode(bytes)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Vec<u8>>, D::Error> {
        Vec::<String>::deserialize(from)?.iter().map(|text| bytes(text)).collect()
    }
}

/// A list of optional byte strings.
pub(crate) mod hex_options {
    use super::{Deserialize, Deserializer, Serializer, bytes, encode};

    pub(crate) fn serialize<S: Serializer>(value: &[Option<Vec<u8>>], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(value.iter().map(|bytes| bytes.as_deref().map(encode)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Option<Vec<u8>>>, D::Error> {
        let texts = Vec::<Option<String>>::deserialize(from)?;
        texts.iter().map(|text| text.as_deref().map(bytes).transpose()).collect()
    }
}

/// A single-precision number as its bits.
pub(crate) mod f32_bits {
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(crate) fn serialize<S: Serializer>(value: &f32, to: S) -> Result<S::Ok, S::Error> {
        value.to_bits().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f32, D::Error> {
        u32::deserialize(from).map(f32::from_bits)
    }
}

/// A double-precision number as its bits.
pub(crate) mod f64_bits {
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(crate) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        value.to_bits().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        u64::deserialize(from).map(f64::from_bits)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]

    use super::decode;
    use crate::plan::{Arg, BufferSpec, Launch, LaunchPlan, RunOutput, Scalar};

    #[test]
    fn a_plan_and_its_output_survive_the_way_to_another_process() {
        let every_byte: Vec<u8> = (0..=255).collect();
        let nan = f32::from_bits(0x7fc0_1234);
        let args = vec![
            Arg::Memory(0),
            Arg::Scalar(Scalar::F32(nan)),
            Arg::Scalar(Scalar::F64(f64::NEG_INFINITY)),
            Arg::Scalar(Scalar::Bytes(vec![0, 255])),
            Arg::Scalar(Scalar::U64(u64::MAX)),
            Arg::Local(8),
        ];
        let plan = LaunchPlan {
            buffers: vec![BufferSpec::new("a", 256).with_data(every_byte.clone()).read_back()],
            launches: vec![Launch { kernel: "k".into(), global: [3, 1, 1], local: None, args }],
        };
        let back: LaunchPlan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
        assert_eq!(back.buffers, plan.buffers);
        let Arg::Scalar(Scalar::F32(same)) = back.launches[0].args[1] else { panic!("{back:?}") };
        assert_eq!(same.to_bits(), nan.to_bits());
        assert_eq!(back.launches[0].args[2..], plan.launches[0].args[2..]);
        let output = RunOutput {
            buffers: vec![None, Some(every_byte), Some(Vec::new())],
            launch_nanoseconds: vec![Some(3), None],
            snapshots: vec![vec![7], Vec::new()],
        };
        let back: RunOutput = serde_json::from_str(&serde_json::to_string(&output).unwrap()).unwrap();
        assert_eq!(back, output);
    }

    #[test]
    fn what_is_no_hexadecimal_is_refused() {
        assert_eq!(decode("00ff"), Some(vec![0, 255]));
        for bad in ["0", "0g", "FF", "äb"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
