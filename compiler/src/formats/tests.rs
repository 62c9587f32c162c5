//! Names against maps that were written by hand, and against elements placed one by one.

use tilewright_ir::{Bindings, Expr};
use tilewright_script::{Symbols, read_index_map, read_shape};
use tilewright_verify::{Config, Judge, MapClaim};

use super::{Named, read};

/// A name; the same as a lambda, by hand; a ragged shape of pairwise distinct extents; a symbolic one.
const TABLE: [(&str, &str, &[i64], &str); 22] = [
    ("NCHW", "lambda n, c, h, w: [n, c, h, w]", &[2, 17, 7, 9], "n,c,h,w"),
    ("NHWC", "lambda n, c, h, w: [n, h, w, c]", &[2, 17, 7, 9], "n,c,h,w"),
    ("NCHW4c", "lambda n, c, h, w: [n, c//4, h, w, c%4]", &[2, 17, 7, 9], "n,c,h,w"),
    ("NCHW16c", "lambda n, c, h, w: [n, c//16, h, w, c%16]", &[2, 35, 7, 9], "n,c,h,w"),
    ("NHWC4c", "lambda n, c, h, w: [n, h, w, c//4, c%4]", &[2, 17, 7, 9], "n,c,h,w"),
    ("OIHW4o", "lambda o, i, h, w: [o//4, i, h, w, o%4]", &[11, 6, 3, 5], "o,i,h,w"),
    ("OIHW16i16o", "lambda o, i, h, w: [o//16, i//16, h, w, i%16, o%16]", &[35, 18, 3, 5], "o,i,h,w"),
    ("OIHW4i16o4i", "lambda o, i, h, w: [o//16, i//16, h, w, i//4%4, o%16, i%4]", &[35, 18, 3, 5], "o,i,h,w"),
    ("HWIO", "lambda o, i, h, w: [h, w, i, o]", &[11, 6, 3, 5], "o,i,h,w"),
    ("NHWC->NCHW4c", "lambda n, h, w, c: [n, c//4, h, w, c%4]", &[2, 7, 9, 17], "n,h,w,c"),
    ("nchw", "lambda n, c, h, w: [n, c, h, w]", &[2, 17, 7, 9], "n,c,h,w"),
    ("nhwc", "lambda n, c, h, w: [n, h, w, c]", &[2, 17, 7, 9], "n,c,h,w"),
    ("nChw16c", "lambda n, c, h, w: [n, c//16, h, w, c%16]", &[2, 35, 7, 9], "n,c,h,w"),
    ("nChw8c", "lambda n, c, h, w: [n, c//8, h, w, c%8]", &[2, 19, 7, 9], "n,c,h,w"),
    ("OIhw4i16o4i", "lambda o, i, h, w: [o//16, i//16, h, w, i//4%4, o%16, i%4]", &[35, 18, 3, 5], "o,i,h,w"),
    ("OIhw16i16o", "lambda o, i, h, w: [o//16, i//16, h, w, i%16, o%16]", &[35, 18, 3, 5], "o,i,h,w"),
    ("aBcd16b", "lambda a, b, c, d: [a, b//16, c, d, b%16]", &[2, 35, 7, 9], "p,q,r,s"),
    ("acdb", "lambda a, b, c, d: [a, c, d, b]", &[2, 17, 7, 9], "p,q,r,s"),
    ("ABcd4b16a4b", "lambda a, b, c, d: [a//16, b//16, c, d, b//4%4, a%16, b%4]", &[35, 18, 3, 5], "p,q,r,s"),
    ("(8,128)", "lambda i, j: [i//8, j//128, i%8, j%128]", &[19, 300], "n,m"),
    ("(8,128)(2,1)", "lambda i, j: [i//8, j//128, i%8//2, j%128, i%2, 0]", &[19, 300], "n,m"),
    ("(8,128)(4,1)", "lambda i, j: [i//8, j//128, i%8//4, j%128, i%4, 0]", &[19, 300], "n,m"),
];

fn shape(text: &str) -> Vec<Expr> {
    read_shape(text, &mut Symbols::default()).unwrap()
}

fn ints(extents: &[i64]) -> Vec<Expr> {
    extents.iter().copied().map(Expr::int).collect()
}

fn named(text: &str, shape: &[Expr]) -> Named {
    read(text, shape).unwrap().unwrap()
}

fn fault(text: &str, extents: &[i64]) -> (String, Option<(u32, u32)>) {
    let found = read(text, &ints(extents)).unwrap().unwrap_err().remove(0);
    (found.message.clone(), found.labels.first().map(|label| (label.span.start, label.span.end)))
}

/// The obligations of a name that the judge does not prove.
fn undecided(judge: &Judge, text: &str, by_hand: &str, shape: &[Expr]) -> Vec<String> {
    let Named { map, meaning, shape: physical, padded_axes } = named(text, shape);
    let lambda = read_index_map(by_hand, Some(shape), &mut Symbols::default()).unwrap();
    let claim = MapClaim::new(&map, &physical).padded(&padded_axes);
    let mut reports = judge.check_map(claim.meaning(&meaning));
    reports.extend(
        judge.check_map(claim.meaning(&lambda)).into_iter().filter(|report| report.obligation.id() == "specification"),
    );
    reports.extend(judge.check_map(MapClaim::new(&lambda, &physical).padded(&padded_axes).meaning(&meaning)));
    assert_eq!(reports.iter().filter(|report| report.obligation.id() == "specification").count(), 3);
    let wrong = reports.iter().filter(|report| !report.verdict.is_proved());
    wrong.map(|report| format!("{text}: {} {} by {}", report.obligation, report.verdict, report.method)).collect()
}

#[test]
fn every_name_is_its_map_by_hand_on_a_ragged_shape_by_proof() {
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    for (text, by_hand, extents, _) in TABLE {
        assert_eq!(undecided(&judge, text, by_hand, &ints(extents)), Vec::<String>::new());
    }
}

#[test]
fn every_name_is_its_map_by_hand_on_every_shape_by_proof() {
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    for (text, by_hand, _, symbolic) in TABLE {
        assert_eq!(undecided(&judge, text, by_hand, &shape(symbolic)), Vec::<String>::new());
    }
}

#[test]
fn a_name_with_its_blocks_swapped_is_refuted() {
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    for (text, wrong, extents) in [
        ("OIhw4i16o4i", "lambda o, i, h, w: [o//16, i//16, h, w, i%4, o%16, i//4%4]", &[35, 18, 3, 5]),
        ("nChw16c", "lambda n, c, h, w: [n, c//16, w, h, c%16]", &[2, 35, 7, 9]),
        ("NHWC4c", "lambda n, c, h, w: [n, h, w, c%4, c//4]", &[2, 17, 7, 9]),
    ] {
        let shape = ints(extents);
        let found = named(text, &shape);
        let meaning = read_index_map(wrong, Some(&shape), &mut Symbols::default()).unwrap();
        let reports = judge.check_map(MapClaim::new(&found.map, &found.shape).meaning(&meaning));
        let report = reports.iter().find(|report| report.obligation.id() == "specification").unwrap();
        assert!(matches!(report.verdict, tilewright_verify::Verdict::Refuted(_)), "{text}: {}", report.verdict);
    }
}

/// Where oneDNN's own loop over the blocks (`memory_desc_wrapper::off_v`) puts an element, written anew: the blocks are
/// taken off from the last to the first, then the outer parts are laid out in the order of the letters.
fn offset(name: &str, order: &str, shape: &[i64], index: &[i64]) -> i64 {
    let (mut blocks, mut outer, mut digits) = (Vec::new(), Vec::new(), String::new());
    for c in name.chars() {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let axis = order.find(c.to_ascii_lowercase()).unwrap();
        match std::mem::take(&mut digits).parse::<i64>() {
            Ok(block) => blocks.push((axis, block)),
            Err(_) => outer.push(axis),
        }
    }
    let (mut rest, mut extents) = (index.to_vec(), shape.to_vec());
    let (mut offset, mut stride) = (0, 1);
    for (axis, block) in blocks.into_iter().rev() {
        offset += rest[axis] % block * stride;
        rest[axis] /= block;
        extents[axis] = (extents[axis] + block - 1) / block;
        stride *= block;
    }
    for axis in outer.into_iter().rev() {
        offset += rest[axis] * stride;
        stride *= extents[axis];
    }
    offset
}

fn indices(shape: &[i64]) -> Vec<Vec<i64>> {
    let mut all = vec![Vec::new()];
    for extent in shape {
        let longer = all.iter().flat_map(|index: &Vec<i64>| (0..*extent).map(|at| [index.as_slice(), &[at]].concat()));
        all = longer.collect();
    }
    all
}

fn position(named: &Named, index: &[i64]) -> i64 {
    let index: Vec<i128> = index.iter().map(|at| i128::from(*at)).collect();
    let places = named.map.eval(&index, &Bindings::new()).unwrap();
    let stated = named.meaning.eval(&index, &Bindings::new()).unwrap();
    assert_eq!(places, stated);
    let extents = named.shape.iter().map(|extent| extent.as_const_int().unwrap());
    let flat = places.into_iter().zip(extents).fold(0, |flat, (place, extent)| {
        assert!(place < extent);
        flat * extent + place
    });
    i64::try_from(flat).unwrap()
}

#[test]
fn every_element_of_every_letter_format_lies_where_its_blocks_put_it() {
    for (text, _, extents, _) in TABLE.iter().filter(|(text, ..)| !text.starts_with('(') && !text.contains('>')) {
        let order = if text.contains(['a', 'A']) {
            "abcd"
        } else if text.contains(['o', 'O']) {
            "oihw"
        } else {
            "nchw"
        };
        let found = named(text, &ints(extents));
        for index in indices(extents) {
            assert_eq!(position(&found, &index), offset(text, order, extents, &index), "{text} {index:?}");
        }
    }
}

#[test]
fn every_element_of_a_tile_format_lies_where_the_page_puts_it() {
    for (text, extents) in
        [("(8,128)", [19, 300]), ("(8,128)(2,1)", [19, 300]), ("(8,128)(4,1)", [5, 130]), ("(2,4)(2,1)", [5, 11])]
    {
        let xla = format!("f32[{},{}]{{1,0:T{text}}}", extents[0], extents[1]);
        let tilewright_ir::XlaShape::Array(array) = tilewright_script::read_xla_shape(&xla).unwrap() else { panic!() };
        let tiling = array.tiling().unwrap();
        let found = named(text, &ints(&extents));
        let physical: Vec<_> =
            tiling.physical_shape().iter().map(|extent| Expr::int((*extent).try_into().unwrap())).collect();
        assert_eq!(found.shape, physical);
        for index in indices(&extents) {
            let index_u64: Vec<u64> = index.iter().map(|at| u64::try_from(*at).unwrap()).collect();
            let expected = i64::try_from(tiling.linear_index(&index_u64).unwrap()).unwrap();
            assert_eq!(position(&found, &index), expected, "{text} {index:?}");
        }
    }
}

#[test]
fn one_format_is_turned_into_another_through_its_blocks() {
    let found = named("NCHW4c->NHWC", &ints(&[2, 5, 7, 9, 4]));
    assert_eq!(found.map.to_string(), "lambda n, c_outer, h, w, c_inner: [n, h, w, c_outer * 4 + c_inner]");
    assert_eq!(found.shape, ints(&[2, 7, 9, 20]));
    let found = named("nChw8c -> NHWC4c", &ints(&[2, 5, 7, 9, 8]));
    assert_eq!(
        found.map.to_string(),
        "lambda n, c_outer, h, w, c_inner: [n, h, w, c_outer * 2 + c_inner // 4, c_inner % 4]"
    );
    assert_eq!(found.shape, ints(&[2, 7, 9, 10, 4]));
}

#[test]
fn letters_have_their_usual_order_whatever_the_layout_is() {
    for (text, order) in [
        ("CHWN", "nchw"),
        ("HWIO", "oihw"),
        ("gOIhw4o2i", "goihw"),
        ("ntc", "tnc"),
        ("ldgoi", "ldigo"),
        ("dcba", "abcd"),
        ("MKkm", ""),
    ] {
        if order.is_empty() {
            continue;
        }
        let shape: Vec<Expr> = [2, 17, 7, 9, 5][..order.len()].iter().copied().map(Expr::int).collect();
        let names: String = named(text, &shape).map.vars().iter().map(tilewright_ir::Var::name).collect();
        assert_eq!(names, order, "{text}");
    }
    let found = named("MK8m", &ints(&[19, 5]));
    assert_eq!(found.map.to_string(), "lambda m, k: [m // 8, k, m % 8]");
}

#[test]
fn errors_in_a_name_have_their_position() {
    type Case = (&'static str, &'static [i64], &'static str, (u32, u32));
    let cases: [Case; 18] = [
        ("NCHW4d", &[2, 3, 5, 7], "the axis d has a block, but there is no D", (4, 6)),
        ("NCHW4", &[2, 3, 5, 7], "the block size 4 has no axis", (4, 5)),
        ("NCHWc", &[2, 3, 5, 7], "the axis c appears twice", (4, 5)),
        ("NCHW0c", &[2, 3, 5, 7], "0 is no size of a block", (4, 5)),
        ("NCHW99999999999999999999c", &[2, 3, 5, 7], "99999999999999999999 is no size of a block", (4, 24)),
        ("NCHW65536c65536c", &[2, 3, 5, 7], "the blocks of c have more than 2147483647 elements", (10, 16)),
        ("NCHWN", &[2, 3, 5, 7], "the axis N appears twice", (4, 5)),
        ("NCHW4C", &[2, 3, 5, 7], "the block 4C is written with a capital", (4, 6)),
        ("nChw", &[2, 3, 5, 7], "the capital C marks an axis with blocks, but it has none", (1, 2)),
        ("nchw4c", &[2, 3, 5, 7], "the axis c has a block, so its outer part is written C", (1, 2)),
        ("NC_HW", &[2, 3, 5, 7], "`_` is no part of a format name", (2, 3)),
        ("NCHW4c", &[2, 3, 5], "NCHW has 4 axes, but the shape has 3", (0, 6)),
        ("NHWC->NCW", &[2, 3, 5, 7], "the axis H stands on the left side of the arrow only", (0, 9)),
        ("NCHW4c->NHWC", &[2, 5, 7, 9, 3], "the block 4c has 4 elements, but the shape says 3", (0, 12)),
        ("(8,0)", &[19, 300], "0 is not a tile size", (3, 4)),
        ("(*,8", &[19, 300], "expected `,` or `)`, found the end of the text", (4, 4)),
        ("(8)3", &[19, 300], "`3` follows the end of the tiles", (3, 4)),
        ("(-8,128)", &[19, 300], "-8 is negative, and a tile size is at least 1", (1, 3)),
    ];
    for (text, extents, message, place) in cases {
        assert_eq!(fault(text, extents), (message.to_owned(), Some(place)), "{text}");
    }
}

#[test]
fn other_texts_are_left_to_the_reader_of_lambdas() {
    for text in ["lambda i: [i]", "lambda i:[i]", "[i, j]", "T.index_map(lambda i: [i])", "i + j", "17", ""] {
        assert!(read(text, &ints(&[3])).is_none(), "{text}");
    }
}

#[test]
fn hostile_names_are_errors() {
    let long = "A".repeat(100_000);
    assert!(read(&long, &ints(&[3])).unwrap().is_err());
    assert!(read(&"(2)".repeat(100_000), &ints(&[3])).unwrap().is_err());
    let doubling = format!("({})", "*,2)(".repeat(60).trim_end_matches(")("));
    assert!(read(&doubling, &ints(&[7, 9])).unwrap().is_err());
    let huge = [1i64 << 62, 1 << 62].map(Expr::int);
    assert!(read("(8,128)", &huge).unwrap().is_err());
}
