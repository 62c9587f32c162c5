//! `tilewright draw` shows where every element lies, in a terminal and as SVG.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;

use common::{Run, tilewright, tilewright_with_input};
use serde_json::{Value, json};

fn text(args: &[&str]) -> Run {
    tilewright(&[&["draw"], args].concat())
}

fn document(args: &[&str]) -> Value {
    tilewright(&[&["draw", "--format", "json"], args].concat()).json()
}

/// The SVG of a picture, and the exit code.
fn svg(args: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("picture.svg");
    let run = tilewright(&[&["draw"], args, &["-o", path.to_str().unwrap()]].concat());
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    (run.code, std::fs::read_to_string(path).unwrap())
}

/// An element of a parsed document.
struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    /// The text in it and in what it contains.
    text: String,
}

impl Element {
    fn is(&self, class: &str) -> bool {
        self.attributes.iter().any(|(name, value)| name == "class" && value == class)
    }
}

/// Text without entities; none that XML does not know may be there.
fn unescaped(text: &str) -> String {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('&') {
        let known = ["amp;", "lt;", "gt;", "quot;"];
        assert!(known.iter().any(|entity| after.starts_with(entity)), "{after:.20}");
        rest = after;
    }
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// Reads XML as strictly as is needed here: every tag is closed in its turn, every attribute quoted, nothing is open.
fn parse(document: &str) -> Vec<Element> {
    let (mut done, mut open): (Vec<Element>, Vec<Element>) = (Vec::new(), Vec::new());
    let mut rest = document;
    while let Some((text, after)) = rest.split_once('<') {
        assert!(!text.contains('>'), "{text}");
        for element in &mut open {
            element.text.push_str(&unescaped(text));
        }
        assert!(!open.is_empty() || text.trim().is_empty());
        let (tag, after) = after.split_once('>').unwrap();
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            let element = open.pop().unwrap();
            assert_eq!(element.name, name);
            done.push(element);
            continue;
        }
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, mut list) = tag.split_once(' ').unwrap_or((tag, ""));
        let mut attributes: Vec<(String, String)> = Vec::new();
        while let Some((key, after)) = list.split_once("=\"") {
            let (value, after) = after.split_once('"').unwrap();
            assert!(key.trim().chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{key}");
            assert!(attributes.iter().all(|(other, _)| other != key.trim()), "{tag}");
            attributes.push((key.trim().to_owned(), unescaped(value)));
            list = after;
        }
        assert!(list.trim().is_empty(), "{tag}");
        let element = Element { name: name.to_owned(), attributes, text: String::new() };
        if closed { done.push(element) } else { open.push(element) }
    }
    assert!(open.is_empty() && rest.trim().is_empty());
    assert_eq!(done.last().unwrap().name, "svg");
    done
}

#[test]
fn the_parser_of_this_test_refuses_what_is_no_document() {
    for broken in
        ["<svg>", "<svg><g></svg></g>", "<svg a=b></svg>", "<svg>&x;</svg>", "<svg/>tail", "<svg a=\"1\" a=\"2\"/>"]
    {
        assert!(std::panic::catch_unwind(|| parse(broken)).is_err(), "{broken}");
    }
    assert_eq!(parse("<svg><g a=\"1\">x &lt; y</g></svg>").len(), 2);
}

#[test]
fn figure_1_in_a_terminal() {
    let run = text(&["F32[3,5]{1,0:T(2,2)}"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(
        run.stdout,
        "\
f32[3,5]{1,0:T(2,2)}
15 elements of [3, 5] in 24 slots, 9 of them padding, tiles (2,2)

each element with its place in memory, padding in brackets:

   i0      0     1     2     3     4     5  i1
    0      0     1|    4     5|    8   [9]
    1      2     3|    6     7|   10  [11]
      ------------------------------------
    2     12    13|   16    17|   20  [21]
    3   [14]  [15]| [18]  [19]| [22]  [23]

memory, each slot with the index of its element, padding as dots:

  slot     0    1    2    3
     0   0,0  0,1  1,0  1,1
     4   0,2  0,3  1,2  1,3
     8   0,4    .  1,4    .
    12   2,0  2,1    .    .
    16   2,2  2,3    .    .
    20   2,4    .    .    .
"
    );
}

#[test]
fn figure_2_has_both_levels_of_tiles() {
    let run = text(&["f32[4,8]{1,0:T(2,4)(2,1)}"]);
    assert!(
        run.stdout.contains("    0    0:  2:  4:  6|  8: 10: 12: 14\n    1    1:  3:  5:  7|  9: 11: 13: 15\n"),
        "{}",
        run.stdout
    );
    let json = document(&["f32[4,8]{1,0:T(2,4)(2,1)}"]);
    assert_eq!((&json["schema"], &json["levels"]), (&json!("tilewright.draw/1"), &json!(["(2,4)", "(2,1)"])));
    // Element (1, 5) is at 11, in the second large tile and the sixth small one.
    let element = &json["elements"][13];
    assert_eq!(*element, json!({"logical": [1, 5], "memory": [11], "slot": 11, "tiles": [1, 5], "collides": false}));
    let (code, picture) = svg(&["f32[4,8]{1,0:T(2,4)(2,1)}"]);
    let parsed = parse(&picture);
    assert_eq!(code, Some(0));
    assert!(
        parsed.iter().any(|element| element.is("t") && element.attributes.iter().any(|(_, value)| value == "#d00"))
    );
}

/// Every element and every slot of padding is a cell of the array and one of memory, with its place in words.
#[test]
fn the_svg_has_every_cell_and_every_offset() {
    for (layout, elements, padding) in [("f32[3,5]{1,0:T(2,2)}", 15usize, 9usize), ("s8[7,9]{0,1:T(4,2)(2,2)}", 63, 33)]
    {
        let json = document(&[layout]);
        assert_eq!(json["elements"].as_array().unwrap().len(), elements);
        assert_eq!(json["padding"].as_array().unwrap().len(), padding);
        let parsed = parse(&svg(&[layout]).1);
        assert_eq!(parsed.iter().filter(|element| element.is("e")).count(), 2 * elements);
        assert_eq!(parsed.iter().filter(|element| element.is("p")).count(), 2 * padding);
        let titles: BTreeSet<&str> =
            parsed.iter().filter(|element| element.name == "title").map(|element| element.text.as_str()).collect();
        let numbers: Vec<&str> =
            parsed.iter().filter(|element| element.name == "text").map(|element| element.text.as_str()).collect();
        for element in json["elements"].as_array().unwrap() {
            let (at, slot) = (&element["logical"], element["slot"].as_u64().unwrap());
            assert!(titles.contains(format!("({},{}) at {slot}", at[0], at[1]).as_str()), "{element}");
            assert!(titles.contains(format!("{slot}: ({},{})", at[0], at[1]).as_str()), "{element}");
            assert!(numbers.contains(&slot.to_string().as_str()));
        }
        for slot in json["padding"].as_array().unwrap() {
            assert!(titles.contains(format!("{}: padding", slot["slot"]).as_str()), "{slot}");
        }
    }
}

#[test]
fn sixty_four_by_sixty_four_keeps_its_numbers_and_stays_small() {
    let (code, picture) = svg(&["bf16[64,64]{1,0:T(8,128)(2,1)}"]);
    assert_eq!(code, Some(0));
    assert!(picture.len() < 2 << 20, "{} bytes", picture.len());
    let parsed = parse(&picture);
    assert_eq!(parsed.iter().filter(|element| element.is("e")).count(), 2 * 64 * 64);
    let numbers: BTreeSet<&str> =
        parsed.iter().filter(|element| element.name == "text").map(|element| element.text.as_str()).collect();
    assert!(numbers.contains("7295") && numbers.contains("63,63"));
    let (_, largest) = svg(&["f32[256,256]{1,0:T(8,128)}"]);
    assert!(largest.len() < 8 << 20, "{} bytes", largest.len());
    assert_eq!(parse(&largest).iter().filter(|element| element.is("e")).count(), 256 * 256);
}

#[test]
fn leading_axes_are_grids_of_their_own_and_padding_stands_around() {
    let run = text(&["lambda n, h, w, c: [n, c//4, h, w, c%4]", "--shape", "1,2,3,7"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    for said in ["  n = 0, h = 1\n", "    0     12    13    14    15|   36    37    38  [39]\n", "tiles (c // 4)"] {
        assert!(run.stdout.contains(said), "{said}: {}", run.stdout);
    }
    let (_, picture) = svg(&["lambda n, h, w, c: [n, c//4, h, w, c%4]", "--shape", "1,2,3,7"]);
    assert!(parse(&picture).iter().any(|element| element.name == "text" && element.text == "n = 0, h = 1"));
}

#[test]
fn memory_of_two_axes_has_rows_and_columns() {
    let json = document(&["lambda n, h, w, c: [n, c//4, h, AXIS_SEPARATOR, w, c%4]", "--shape", "1,2,3,7"]);
    assert_eq!((&json["memory_shape"], &json["columns"]), (&json!([4, 12]), &json!(12)));
    assert_eq!(json["elements"][41]["memory"], json!([3, 10]));
    let run = text(&["lambda a, b, c: [a, AXIS_SEPARATOR, b, AXIS_SEPARATOR, c]", "--shape", "2,3,5"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("memory has 3 axes"), "{}", run.stderr);
}

#[test]
fn what_collides_is_marked_with_both_indices() {
    let map = ["lambda i, j: [2*i + j]", "--shape", "3,4"];
    let run = text(&map);
    assert_eq!(run.code, Some(1), "{run:?}");
    for said in ["wrong: (0, 2) and (1, 0) both land on 2\n", "    1   !2   3   4   5\n", "!0,2 + 1,0"] {
        assert!(run.stdout.contains(said), "{said}: {}", run.stdout);
    }
    let (code, picture) = svg(&map);
    assert_eq!(code, Some(1));
    let parsed = parse(&picture);
    // Both elements, and the slot that they share.
    assert_eq!(parsed.iter().filter(|element| element.is("m")).count(), 3);
    assert!(parsed.iter().any(|element| element.text == "Wrong: (0, 2) and (1, 0) both land on 2"));
    assert!(parsed.iter().any(|element| element.text == "(0,2) and (1,0) both at 2"));
    let json = document(&map);
    assert_eq!(json["counterexample"]["indices"], json!([[0, 2], [1, 0]]));
}

#[test]
fn a_symbolic_shape_is_drawn_where_it_is_wrong() {
    let run = text(&["lambda i, j: [i*m + j]", "--shape", "n,m + 1"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains(" at n = ") && run.stdout.contains("both land on"), "{}", run.stdout);
    let run = text(&["lambda i, j: [j, i]", "--shape", "n,m"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("give numbers instead of names"), "{}", run.stderr);
}

#[test]
fn an_index_outside_of_memory_is_marked() {
    let run = text(&["lambda i: [i - 2]", "--shape", "5"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("wrong: 0 lands on -2, outside of memory"), "{}", run.stdout);
    let run = text(&["lambda i: [i]", "--shape", "5", "--physical-shape", "3"]);
    assert!(run.stdout.contains("wrong: 3 lands on 3, outside of memory"), "{}", run.stdout);
}

#[test]
fn what_cannot_be_drawn_is_said() {
    for (args, said) in [
        (vec!["f32[4611686018427387904]"], "2^63 - 1"),
        (vec!["f32[3,0]"], "empty-shape"),
        (vec!["f32[?]"], "unbounded"),
        (vec!["token[]"], "no-array"),
        (vec!["f32[3,5]{1,1}"], "error["),
        (vec!["f32[3,5]", "--shape", "3,5"], "two-shapes"),
        (vec!["lambda i: [i]"], "missing-shape"),
        (vec!["lambda i: [i * 4611686018427387904]", "--shape", "9"], "extent-overflow"),
        (vec!["f32[3]", "-o", "layout.png"], "output-suffix"),
        (vec!["lambda i: [k]", "--shape", "3"], "unknown-name"),
        (vec!["lambda i: [i // (i - 1)]", "--shape", "3"], "error["),
        (vec!["neither"], "a map is `lambda"),
        (vec!["f32[3]", "-o", "/no/such/folder/a.svg"], "cannot-write"),
    ] {
        let run = text(&args);
        assert_eq!(run.code, Some(2), "{args:?}: {run:?}");
        assert!(run.stderr.contains(said) && run.stdout.is_empty(), "{args:?}: {run:?}");
        assert!(run.stderr.contains("help:"), "{args:?}: {run:?}");
    }
}

/// The part that is drawn: extents of the logical indices, extents of memory, number of elements.
fn cut(args: &[&str]) -> (Vec<u64>, Vec<u64>, usize) {
    let run = tilewright(&[&["draw", "--format", "json"], args].concat());
    assert_eq!(run.code, Some(0), "{run:?}");
    let report = run.json();
    let list = |name: &str| -> Vec<u64> {
        report["cut"][name].as_array().unwrap().iter().map(|extent| extent.as_u64().unwrap()).collect()
    };
    assert_eq!(report["padding"], serde_json::json!([]));
    (list("shape"), list("memory_shape"), report["elements"].as_array().unwrap().len())
}

#[test]
fn what_is_too_large_is_cut_and_the_picture_says_so() {
    for (args, shape, memory, elements) in [
        (&["f32[1000,1000]"][..], vec![32, 64], vec![2048], 2048),
        (&["f32[3,5]{1,0:T(8,16384)}"], vec![3, 5], vec![2048], 15),
        (&["f32[300,3,5]"], vec![4, 3, 5], vec![2048], 60),
        (&["f32[300,7,3,5]"], vec![1, 4, 3, 5], vec![2048], 60),
        (&["lambda i: [i]", "--shape", "65537"], vec![2048], vec![2048], 2048),
        (&["lambda i: [i]", "--shape", "4611686018427387904"], vec![2048], vec![2048], 2048),
        (&["lambda i, j: [i, AXIS_SEPARATOR, j]", "--shape", "1000,2000"], vec![32, 64], vec![32, 64], 2048),
    ] {
        assert_eq!(cut(args), (shape, memory, elements), "{args:?}");
        let (code, picture) = svg(args);
        assert_eq!(code, Some(0));
        let note = "too large for one picture";
        assert!(parse(&picture).iter().any(|element| element.text.starts_with(note)), "{args:?}");
        assert!(text(args).stdout.contains(note), "{args:?}");
    }
    assert!(!text(&["f32[256,256]{1,0:T(8,128)}"]).stdout.contains("too large"));
}

#[test]
fn the_dark_style_has_the_same_cells_on_dark_paper() {
    let layout = "f32[4,8]{1,0:T(2,4)(2,1)}";
    let (light, dark) = (svg(&[layout]).1, svg(&[layout, "--style", "dark"]).1);
    assert_eq!(svg(&[layout, "--style", "light"]).1, light);
    assert!(light.contains("height=\"100%\" fill=\"#fff\"") && !dark.contains("#fff\""), "{dark}");
    let names = |picture: &str| parse(picture).iter().map(|element| element.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&light), names(&dark));
}

#[test]
fn what_stands_in_a_name_breaks_no_document() {
    let (_, picture) = svg(&["lambda i: [i if i < 2 and i > -1 else i]", "--shape", "3"]);
    assert!(parse(&picture).iter().any(|element| element.text.contains("i < 2 and i > -1")), "{picture}");
    let scalar = tilewright_with_input(&["draw", "-"], "f32[]");
    assert_eq!(scalar.code, Some(0), "{scalar:?}");
}
