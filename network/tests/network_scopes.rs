//! Every reason for the place of a value is reached by a small model, and twins that lack the cause get another one.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Writer, adreno, int, ints};
use tilewright_ir::TextureLimits;
use tilewright_network::model::Model;
use tilewright_network::profile::{PROFILES, Profile};
use tilewright_network::scopes::{Reason, collect_storage_info};

/// A convolution that reads `a` several times, a sum over channels `l`, and rows `r` of the image `d`.
fn model() -> Model {
    Writer::new(9)
        .input("x", &[1, 8, 6, 5])
        .node("Relu", &["x"], "a", &[])
        .constant("w", &[8, 8, 3, 3])
        .node("Conv", &["a", "w"], "c", &[ints("pads", &[1, 1, 1, 1])])
        .node("LRN", &["c"], "l", &[int("size", 3)])
        .node("Tanh", &["l"], "d", &[])
        .integers("shape", &[1, 240])
        .node("Reshape", &["d", "shape"], "r", &[])
        .node("Sigmoid", &["r"], "y", &[])
        .output("y")
        .model()
}

fn reason(model: &Model, profile: &Profile, name: &str) -> (Reason, String) {
    let value = model.values.iter().position(|value| value.name == name).unwrap();
    let storage = collect_storage_info(model, profile)[value].clone().unwrap();
    assert_eq!(storage.arrangement.scope().is_texture(), storage.reason.is_texture(), "{name}");
    (storage.reason.clone(), storage.reason.sentence(model))
}

/// The number of a reason in the list of all. A new reason has to be added here, and to the test.
fn number(reason: &Reason) -> usize {
    match reason {
        Reason::Wanted { .. } => 0,
        Reason::NothingAgainst => 1,
        Reason::NoTextures => 2,
        Reason::CallerGives => 3,
        Reason::CallerTakes => 4,
        Reason::Rank(_) => 5,
        Reason::Limits { .. } => 6,
        Reason::Unwritable { .. } => 7,
        Reason::ReadAsBuffer { .. } => 8,
    }
}

#[test]
fn every_reason_is_reached_and_says_what_causes_it() {
    let (model, adreno) = (model(), adreno());
    let narrow = Profile { limits: TextureLimits { width: 16384, height: 11 }, ..adreno.clone() };
    let mut reached = [false; 9];
    let mut says = |profile: &Profile, name: &str, sentence: &str| {
        let (reason, text) = reason(&model, profile, name);
        reached[number(&reason)] = true;
        assert_eq!(text, sentence, "{name}");
    };
    says(&adreno, "x", "the caller writes it");
    says(&adreno, "a", "`n_c` reads each element several times");
    says(&adreno, "c", "no reader needs a buffer");
    says(&adreno, "l", "`n_l` cannot write texels: its sums run over the channels of several texels");
    says(&adreno, "d", "`n_r` reads it row-major");
    says(&adreno, "r", "it has 2 axes, and textures hold N, C, H, W");
    says(&adreno, "y", "the caller reads it");
    // Two texels of channels and six rows are twelve rows of texels.
    says(&narrow, "a", "its texture would have 5x12 texels, and the largest has 16384x11");
    says(&PROFILES[0], "a", "the target keeps tensors in buffers");
    assert_eq!(reached, [true; 9]);
}

#[test]
fn without_its_cause_a_value_has_another_place() {
    let adreno = adreno();
    let of = |writer: Writer, profile: &Profile, name: &str| reason(&writer.model(), profile, name).0;
    let begin = || Writer::new(9).input("x", &[1, 8, 6, 5]).node("Relu", &["x"], "a", &[]);
    // A kernel of one element reads each element once for every four filters.
    let small =
        |filters: i64| begin().constant("w", &[filters, 8, 1, 1]).node("Conv", &["a", "w"], "y", &[]).output("y");
    assert_eq!(of(small(8), &adreno, "a"), Reason::NothingAgainst);
    assert_eq!(of(small(12), &adreno, "a"), Reason::Wanted { node: 1 });
    // Large enough by one row.
    let exact = Profile { limits: TextureLimits { width: 5, height: 12 }, ..adreno.clone() };
    assert_eq!(of(small(12), &exact, "a"), Reason::Wanted { node: 1 });
    // A row-major reader beside one that wants a texture: a conversion is made for the former.
    let both = begin()
        .constant("w", &[12, 8, 1, 1])
        .node("Conv", &["a", "w"], "c", &[])
        .integers("shape", &[1, 240])
        .node("Reshape", &["a", "shape"], "r", &[])
        .output("c")
        .output("r");
    assert_eq!(of(both, &adreno, "a"), Reason::Wanted { node: 1 });
    // Parts that end with whole texels can be joined in a texture.
    let joined = |channels: i64| {
        let all = Writer::new(9).input("x", &[1, channels, 6, 5]).input("z", &[1, 8, 6, 5]);
        all.node("Concat", &["x", "z"], "k", &[int("axis", 1)]).node("Relu", &["k"], "y", &[]).output("y")
    };
    assert_eq!(of(joined(8), &adreno, "k"), Reason::NothingAgainst);
    assert!(matches!(of(joined(6), &adreno, "k"), Reason::Unwritable { node: 0, .. }));
}
