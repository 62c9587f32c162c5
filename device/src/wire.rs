//! The contents of memory as byte strings in messages between processes; serde would write a list of numbers.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::{ByteBuf, Bytes};

/// A byte string that others share; on the other side it has one owner.
pub(crate) mod shared_bytes {
    use std::sync::Arc;

    use super::{ByteBuf, Bytes, Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(value: &Arc<Vec<u8>>, to: S) -> Result<S::Ok, S::Error> {
        Bytes::new(value).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<Vec<u8>>, D::Error> {
        ByteBuf::deserialize(from).map(|bytes| Arc::new(bytes.into_vec()))
    }
}

/// A list of byte strings.
pub(crate) mod byte_list {
    use super::{ByteBuf, Bytes, Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(value: &[Vec<u8>], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(value.iter().map(|bytes| Bytes::new(bytes)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Vec<u8>>, D::Error> {
        Ok(Vec::<ByteBuf>::deserialize(from)?.into_iter().map(ByteBuf::into_vec).collect())
    }
}

/// A list of optional byte strings.
pub(crate) mod byte_options {
    use super::{ByteBuf, Bytes, Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(value: &[Option<Vec<u8>>], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(value.iter().map(|bytes| bytes.as_deref().map(Bytes::new)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Option<Vec<u8>>>, D::Error> {
        let read = Vec::<Option<ByteBuf>>::deserialize(from)?;
        Ok(read.into_iter().map(|bytes| bytes.map(ByteBuf::into_vec)).collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]

    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use crate::plan::{Arg, BufferSpec, Launch, LaunchPlan, RunOutput, Scalar};

    /// What another process receives.
    fn sent<T: Serialize + DeserializeOwned>(message: &T) -> T {
        rmp_serde::from_slice(&rmp_serde::to_vec_named(message).unwrap()).unwrap()
    }

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
        let back = sent(&plan);
        assert_eq!(back.buffers, plan.buffers);
        let Arg::Scalar(Scalar::F32(same)) = back.launches[0].args[1] else { panic!("{back:?}") };
        assert_eq!(same.to_bits(), nan.to_bits());
        assert_eq!(back.launches[0].args[2..], plan.launches[0].args[2..]);
        let output = RunOutput {
            buffers: vec![None, Some(every_byte), Some(Vec::new())],
            launch_nanoseconds: vec![Some(3), None],
            snapshots: vec![vec![7], Vec::new()],
        };
        assert_eq!(sent(&output), output);
    }

    #[test]
    fn memory_takes_as_many_bytes_as_it_has() {
        let plan = |bytes| LaunchPlan {
            buffers: vec![BufferSpec::new("a", bytes).with_data(vec![255; usize::try_from(bytes).unwrap()])],
            launches: Vec::new(),
        };
        let size = |bytes| rmp_serde::to_vec_named(&plan(bytes)).unwrap().len();
        assert_eq!(size(60_000) - size(50_000), 10_000);
    }
}
