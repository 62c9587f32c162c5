//! XLA's notation is read strictly and printed exactly as XLA prints it.

use proptest::prelude::*;
use tilewright_ir::layout::{
    ArrayShape, DimAttribute, DimLevel, Dimension, ElementType, Layout, SplitConfig, Tile, TileDim,
};
use tilewright_ir::{Diagnostic, XlaShape};
use tilewright_script::{print_xla_shape, read_xla_shape};

fn printed(text: &str) -> String {
    match read_xla_shape(text) {
        Ok(shape) => print_xla_shape(&shape),
        Err(found) => panic!("{text}: {found:?}"),
    }
}

/// Returns the error for a text, and the part of the text that it points at.
fn error_at(text: &str) -> (Diagnostic, &str) {
    match read_xla_shape(text) {
        Ok(shape) => panic!("{text} is read as {}", print_xla_shape(&shape)),
        Err(mut found) => {
            let found = found.remove(0);
            assert!(found.help.is_some(), "{text}: {found}");
            let span = found.labels[0].span;
            (found, &text[span.start as usize..span.end as usize])
        }
    }
}

#[test]
fn text_in_the_notation_of_xla_is_printed_unchanged() {
    for text in [
        "f32[]",
        "f32[3,5]",
        "f32[3,5]{1,0}",
        "f32[3,5]{1,0:T(2,2)}",
        "bf16[1000,1000]{0,1:T(8,128)(2,1)}",
        "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}",
        "s4[123,7]{1,0:T(8,128)(4,1)L(1024)E(4)S(1)SC(0:3)(1:0,4)M(1024)}",
        "f32[<=3,?]{1,0}",
        "f32[]{:T(256)S(5)}",
        "pred[7]{0:E(1)}",
        "u8[9,10]{1,0:D(C+~,S~)#(u32)*(u64)S(2)P((s32[9]{0}, u8[8]{0}))}",
        "(f32[3]{0}, (s8[2,7]{1,0}, token[]), opaque[])",
        "()",
        "(f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[7], f32[])",
    ] {
        assert_eq!(printed(text), text);
    }
}

#[test]
fn whitespace_comments_and_upper_case_are_accepted() {
    assert_eq!(printed("F32[3,5]{1,0:T(2,2)}"), "f32[3,5]{1,0:T(2,2)}");
    assert_eq!(printed("BF16[3]"), "bf16[3]");
    assert_eq!(printed(" f32 [ 3 ,\t5 ] { 1 , 0 : T ( 2 , 2 ) }\r\n"), "f32[3,5]{1,0:T(2,2)}");
    assert_eq!(printed("f32[3,5] // rows, columns\n{1,0}/*x*/"), "f32[3,5]{1,0}");
    assert_eq!(printed("F8E4M3B11FNUZ[<= 3]"), "f8e4m3b11fnuz[<=3]");
}

#[test]
fn properties_with_default_values_are_not_printed() {
    assert_eq!(printed("f32[]{}"), "f32[]");
    assert_eq!(printed("f32[3]{0:D(D)L(1)E(0)S(0)M(0)}"), "f32[3]{0}");
}

#[test]
fn every_element_type_is_read() {
    for ty in ElementType::ALL {
        let text = format!("{ty}[3]");
        assert_eq!(printed(&text), text);
        assert_eq!(printed(&text.to_uppercase()), text);
    }
}

#[test]
fn every_kind_of_error_is_reported_at_its_location() {
    for (text, code, place) in [
        ("", "syntax", ""),
        ("f32", "syntax", ""),
        ("f31[3]", "type", "f31"),
        ("Bf16[3]", "type", "Bf16"),
        ("3[f32]", "syntax", "3"),
        ("f32[3", "unclosed", ""),
        ("f32[3 5]", "unclosed", "5"),
        ("f32[3,]", "syntax", "]"),
        ("f32[,3]", "syntax", ","),
        ("f32[-3]", "negative", "-3"),
        ("f32[3.5]", "number", "3.5"),
        ("f32[3x5]", "number", "3x5"),
        ("f32[<3]", "character", "<"),
        ("f32[< =3]", "character", "<"),
        ("f32[<=?]", "syntax", "?"),
        ("f32[99999999999999999999]", "number", "99999999999999999999"),
        ("f32[3,5]{1}", "layout-rank", "1"),
        ("f32[3]{1,0}", "layout-rank", "1,0"),
        ("f32[3]{}", "layout-rank", "{}"),
        ("f32[3,5]{1,1}", "duplicate-dimension", "1"),
        ("f32[3,5]{2,0}", "dimension-range", "2"),
        ("f32[3,5]{1,-1}", "negative", "-1"),
        ("f32[3,5]{1,0", "unclosed", ""),
        ("f32[3,5]{1,0,}", "syntax", "}"),
        ("f32[3,5]{1,0:}", "property", ":"),
        ("f32[3,5]{1,0}}", "trailing", "}"),
        ("f32[3,5]{1,0}{1,0}", "trailing", "{"),
        ("f32[3,5]{1,0 T(2,2)}", "unclosed", "T"),
        ("f32[3,5]{1,0:T}", "syntax", "}"),
        ("f32[3,5]{1,0:T()}", "empty-tile", "()"),
        ("f32[3,5]{1,0:T(0,2)}", "tile-size", "0"),
        ("f32[3,5]{1,0:T(2,-1)}", "negative", "-1"),
        ("f32[3,5]{1,0:T(-9223372036854775808,2)}", "negative", "-9223372036854775808"),
        ("f32[3,5]{1,0:T(2,-2)}", "negative", "-2"),
        ("f32[3,5]{1,0:T(2,*)}", "combine-last", "*"),
        ("f32[3,5]{1,0:T(*)}", "combine-last", "*"),
        ("f32[3,5]{1,0:T(∗,2)}", "character", "∗"),
        ("f32[3,5]{1,0:T(2,2}", "unclosed", "}"),
        ("f32[3,5]{1,0:T(2,2)(4,1}", "unclosed", "}"),
        ("f32[3,5]{1,0:T(2,2,)}", "syntax", ")"),
        ("f32[3,5]{1,0:T(2,2)T(2,1)}", "property-order", "T"),
        ("f32[3,5]{1,0:S(1)T(2,2)}", "property-order", "T"),
        ("f32[3,5]{1,0:M(1)SC(1:2)}", "property-order", "SC"),
        ("f32[3,5]{1,0:t(2,2)}", "property", "t"),
        ("f32[3,5]{1,0:L(0)}", "tail-alignment", "L(0)"),
        ("f32[3,5]{1,0:L(-4)}", "negative", "-4"),
        ("f32[3,5]{1,0:L(4,4)}", "unclosed", ","),
        ("f32[3,5]{1,0:L()}", "syntax", ")"),
        ("f32[3,5]{1,0:SC(2:1)}", "split-dimension", "(2:1)"),
        ("f32[3,5]{1,0:SC(1:1)(1:2)}", "split-dimension", "(1:2)"),
        ("f32[3,5]{1,0:SC(1:3,2)}", "split-order", "2"),
        ("f32[3,5]{1,0:SC(1:5)}", "split-range", "5"),
        ("f32[3,5]{1,0:SC(1:)}", "split-indices", "(1:)"),
        ("f32[3,5]{1,0:SC(1)}", "syntax", ")"),
        ("f32[3,5]{1,0:D(C)}", "attribute-rank", "D(C)"),
        ("f32[3,5]{1,0:D(X,C)}", "attribute", "X"),
        ("f32[3,5]{1,0:D(D+,C)}", "attribute", "D+"),
        ("f32[3,5]{1,0:D(D,C)T(2,2)}", "sparse-tiles", "(2,2)"),
        ("f32[3,5]{1,0:#(u32)}", "dense", "#(u32)"),
        ("f32[3,5]{1,0:P(f32[3])}", "dense", "P(f32[3])"),
        ("f32[3,5]{1,0:D(D,C)#(s32)}", "unsigned", "#(s32)"),
        ("f32[3,5]{1,0:T(1099511627776,1099511627776)}", "size", "(1099511627776,1099511627776)"),
        ("f32[4294967296,4294967296]", "size", "[4294967296,4294967296]"),
        ("f32[3,5]{1,0:L(9223372036854775807)}", "size", "f32[3,5]{1,0:L(9223372036854775807)}"),
        ("f32[3,5] /* open", "comment", "/*"),
        ("f32[3,5] $", "character", "$"),
        ("token[3]", "extent", "[3]"),
        ("token[]{0}", "layout", "{"),
        ("(f32[3]", "unclosed", ""),
        ("(f32[3],)", "syntax", ")"),
        ("tuple[3]", "type", "tuple"),
        ("f32[3]\u{c}", "character", "\u{c}"),
        ("f32[3]\0", "character", "\0"),
    ] {
        let (found, at) = error_at(text);
        assert_eq!((found.code, at), (code, place), "{text}: {found}");
    }
}

#[test]
fn minus_one_as_a_tile_size_suggests_a_star() {
    assert!(error_at("f32[3,5]{1,0:T(-1,2)}").0.help.is_some_and(|help| help.contains('*')));
}

#[test]
fn very_long_and_deeply_nested_texts_are_rejected() {
    let deep = "(".repeat(100_000);
    let long = format!("f32[{}]", vec!["1"; 100_000].join(","));
    let tiled = format!("f32[3]{{0:T{}}}", "(1)".repeat(100_000));
    let wide = format!("f32[3]{{0:T({})}}", vec!["1"; 100_000].join(","));
    for text in [deep, long, tiled, wide, "f".repeat(2 << 20)] {
        assert!(read_xla_shape(&text).is_err());
    }
    let most = format!("f32[{}]{{{}:T{}}}", ["2"; 10].join(","), "9,8,7,6,5,4,3,2,1,0", "(1,2,1,2)".repeat(64));
    assert_eq!(printed(&most), most);
}

fn dimension() -> impl Strategy<Value = Dimension> {
    prop_oneof![
        6 => (0u64..40).prop_map(Dimension::Static),
        1 => (0u64..40).prop_map(Dimension::Bounded),
        1 => Just(Dimension::Unbounded),
    ]
}

fn tile() -> impl Strategy<Value = Tile> {
    let dim = prop_oneof![(1u64..200).prop_map(TileDim::Size), Just(TileDim::Combine)];
    (prop::collection::vec(dim, 0..3), 1u64..200).prop_map(|(mut dims, last)| {
        dims.push(TileDim::Size(last));
        Tile(dims)
    })
}

fn attribute() -> impl Strategy<Value = DimAttribute> {
    let level = prop_oneof![Just(DimLevel::Compressed), Just(DimLevel::Singleton), Just(DimLevel::LooseCompressed)];
    (level, any::<bool>(), any::<bool>()).prop_map(|(level, unique, ordered)| DimAttribute { level, unique, ordered })
}

fn layout(rank: usize) -> impl Strategy<Value = Layout> {
    let order = Just((0..rank).collect::<Vec<_>>()).prop_shuffle();
    let tiles = prop::collection::vec(tile(), 0..3);
    let attributes = prop::option::of(prop::collection::vec(attribute(), rank));
    let numbers = (1u64..300, 0u64..40, 0u64..6, 0u64..3000);
    let splits = prop::collection::vec(0usize..rank.max(1), 0..2);
    (order, tiles, attributes, numbers, splits).prop_map(move |(order, tiles, attributes, numbers, splits)| {
        let sparse = attributes.filter(|attributes| !attributes.is_empty());
        let (tail_alignment, element_bits, memory_space, metadata_prefix_bytes) = numbers;
        Layout {
            minor_to_major: order,
            tiles: if sparse.is_some() { Vec::new() } else { tiles },
            index_type: sparse.is_some().then_some(ElementType::U32),
            dim_attributes: sparse.unwrap_or_default(),
            tail_alignment,
            element_bits,
            memory_space,
            split_configs: splits.into_iter().map(|dimension| SplitConfig { dimension, indices: vec![0] }).collect(),
            metadata_prefix_bytes,
            ..Layout::row_major(rank)
        }
    })
}

fn shape() -> impl Strategy<Value = XlaShape> {
    let array = prop::collection::vec(dimension(), 0..5)
        .prop_flat_map(|dimensions| {
            let layout = prop::option::of(layout(dimensions.len()));
            (prop::sample::select(ElementType::ALL.to_vec()), Just(dimensions), layout)
        })
        .prop_filter_map("parts that fit", |(ty, dimensions, layout)| {
            ArrayShape::new(ty, dimensions, layout).ok().map(XlaShape::Array)
        });
    let leaf = prop_oneof![8 => array, 1 => Just(XlaShape::Token), 1 => Just(XlaShape::Opaque)];
    leaf.prop_recursive(3, 16, 7, |inner| prop::collection::vec(inner, 0..7).prop_map(XlaShape::Tuple))
}

proptest! {
    #[test]
    fn printing_then_reading_is_the_identity(shape in shape()) {
        let text = print_xla_shape(&shape);
        prop_assert_eq!(read_xla_shape(&text), Ok(shape), "{}", text);
    }

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let _ = read_xla_shape(&text);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_xla_shape(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_tokens_are_rejected_inside_the_text_or_survive_printing(words in prop::collection::vec(
        prop::sample::select(vec![
            "f32", "BF16", "s4", "token", "[", "]", "{", "}", "(", ")", ",", ":", "T", "L", "E", "S", "SC", "M", "D", "P",
            "#", "*", "0", "1", "3", "9223372036854775807", "-1", "?", "<=", " ", "//", "/*", "*/", "\n", "(2,1)", "[3,5]",
            "{1,0}", "é",
        ]), 0..24,
    )) {
        let text = words.concat();
        match read_xla_shape(&text) {
            Ok(read) => prop_assert_eq!(read_xla_shape(&print_xla_shape(&read)), Ok(read)),
            Err(found) => for label in &found[0].labels {
                prop_assert!(text.get(label.span.start as usize..label.span.end as usize).is_some());
            },
        }
    }

    #[test]
    fn damaged_text_is_rejected_inside_the_text_or_survives_printing(
        shape in shape(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(
            b"0192[]{}(),:*#+~?<=-TLESMPCDHf/ \n\xc3".to_vec()), 0..3usize), 1..4),
    ) {
        let mut bytes = print_xla_shape(&shape).into_bytes();
        for (at, byte, kind) in edits {
            let at = at.index(bytes.len().max(1)).min(bytes.len().saturating_sub(1));
            match kind {
                0 => bytes.insert(at, byte),
                1 if !bytes.is_empty() => drop(bytes.remove(at)),
                _ => if let Some(slot) = bytes.get_mut(at) { *slot = byte },
            }
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match read_xla_shape(&text) {
            Ok(read) => prop_assert_eq!(read_xla_shape(&print_xla_shape(&read)), Ok(read)),
            Err(found) => for label in &found[0].labels {
                prop_assert!(text.get(label.span.start as usize..label.span.end as usize).is_some());
            },
        }
    }
}
