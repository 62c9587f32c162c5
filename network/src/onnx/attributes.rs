//! Reads the attributes of a node by name and type. An attribute that nobody asks for is an error, because it may change what
//! the node computes.

use super::messages::{AttributeProto, NodeProto, TensorProto};

/// The attributes of a node, with a record of those that were read.
#[derive(Debug)]
pub(super) struct Attributes<'a> {
    all: &'a [AttributeProto],
    read: Vec<&'a str>,
}

impl<'a> Attributes<'a> {
    pub(super) fn of(node: &'a NodeProto) -> Self {
        Self { all: &node.attribute, read: Vec::new() }
    }

    /// The attribute of a name.
    fn named(&mut self, name: &'a str) -> Option<&'a AttributeProto> {
        self.read.push(name);
        self.all.iter().find(|attribute| attribute.name == name)
    }

    /// Marks attributes as read that do not change the result.
    pub(super) fn ignore(&mut self, names: &[&'a str]) {
        self.read.extend(names);
    }

    pub(super) fn int(&mut self, name: &'a str, default: i64) -> i64 {
        self.named(name).map_or(default, |attribute| attribute.i)
    }

    pub(super) fn float(&mut self, name: &'a str, default: f32) -> f32 {
        self.named(name).map_or(default, |attribute| attribute.f)
    }

    pub(super) fn has(&mut self, name: &'a str) -> bool {
        self.named(name).is_some()
    }

    pub(super) fn ints(&mut self, name: &'a str) -> Option<&'a [i64]> {
        self.named(name).map(|attribute| attribute.ints.as_slice())
    }

    pub(super) fn text(&mut self, name: &'a str) -> Option<&'a [u8]> {
        self.named(name).map(|attribute| attribute.s.as_slice())
    }

    pub(super) fn tensor(&mut self, name: &'a str) -> Option<&'a TensorProto> {
        self.named(name).and_then(|attribute| attribute.t.as_ref())
    }

    /// An attribute that has to have one value, because the operator is supported for no other.
    pub(super) fn only(&mut self, name: &'a str, value: i64) -> Result<(), String> {
        match self.int(name, value) {
            same if same == value => Ok(()),
            other => Err(format!("the attribute `{name}` is {other}, and only {value} is supported")),
        }
    }

    /// Numbers that are not negative, as many as wanted; `default` for each if the attribute is absent.
    pub(super) fn sizes<const N: usize>(&mut self, name: &'a str, default: u64) -> Result<[u64; N], String> {
        let Some(given) = self.ints(name) else { return Ok([default; N]) };
        let sizes = given.iter().map(|&size| u64::try_from(size)).collect::<Result<Vec<_>, _>>();
        sizes.ok().and_then(|sizes| sizes.try_into().ok()).ok_or_else(|| {
            format!("the attribute `{name}` is {given:?}, and {N} numbers that are not negative are supported")
        })
    }

    /// Checks that every attribute was read.
    pub(super) fn finish(self) -> Result<(), String> {
        match self.all.iter().find(|attribute| !self.read.contains(&attribute.name.as_str())) {
            Some(unknown) => Err(format!("the attribute `{}` is not supported", unknown.name)),
            None => Ok(()),
        }
    }
}
