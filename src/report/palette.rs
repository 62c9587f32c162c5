//! The colours of pictures: dark ink on light paper, or light ink on dark paper.

use std::fmt::Write as _;

/// The style of an SVG picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum PictureStyle {
    /// Dark ink on white paper
    #[default]
    Light,
    /// Light ink on dark paper
    Dark,
}

/// Named colours, each as SVG writes it.
#[derive(Debug)]
pub(super) struct Palette {
    /// The background.
    pub(super) paper: &'static str,
    /// Text and borders that matter.
    pub(super) ink: &'static str,
    /// Other text.
    pub(super) text: &'static str,
    /// Numbers and notes.
    pub(super) faint: &'static str,
    /// Thin borders.
    pub(super) line: &'static str,
    /// Lines behind everything.
    pub(super) hairline: &'static str,
    /// Hatched areas: background and stroke.
    pub(super) hatch: [&'static str; 2],
    /// A tensor that is an input.
    pub(super) input: &'static str,
    /// Borders of the tiles of each level.
    pub(super) borders: [&'static str; 3],
    /// Text about a fault.
    pub(super) alarm: &'static str,
    /// An element of a counterexample, and its frame.
    pub(super) marked: [&'static str; 2],
    /// An element that shares its slot.
    pub(super) collides: &'static str,
    /// An element outside memory.
    pub(super) outside: &'static str,
    /// The legend of the strength of a colour.
    pub(super) order: &'static str,
    /// Red, green and blue of the paper, from 0 to 255, with which colours are mixed.
    paper_part: [u32; 3],
    /// The strength of full colours, in tenths: light letters need darker ones.
    strength: u32,
}

const LIGHT: Palette = Palette {
    paper: "#fff",
    ink: "#222",
    text: "#444",
    faint: "#777",
    line: "#8a8a8a",
    hairline: "#e4e4e4",
    hatch: ["#fafafa", "#cfcfcf"],
    input: "#dde3e8",
    borders: ["#222", "#d00", "#06c"],
    alarm: "#c00",
    marked: ["#ff4d4d", "#900"],
    collides: "#ffc4bd",
    outside: "#f06bd8",
    order: "darker is later in memory",
    paper_part: [255, 255, 255],
    strength: 10,
};

const DARK: Palette = Palette {
    paper: "#16191d",
    ink: "#f2f2f2",
    text: "#cdd2d8",
    faint: "#98a0a8",
    line: "#6b727a",
    hairline: "#2b3036",
    hatch: ["#1b1f24", "#3d444c"],
    input: "#39424b",
    borders: ["#f2f2f2", "#ff7a70", "#6db3ff"],
    alarm: "#ff7a70",
    marked: ["#b3261e", "#ffb4ab"],
    collides: "#6e3a36",
    outside: "#8a2f7c",
    order: "brighter is later in memory",
    paper_part: [22, 25, 29],
    strength: 5,
};

/// Red, green and blue of the colours that distinguish tiles and tensors; further ones begin again.
const HUES: [[u32; 3]; 10] = [
    [122, 170, 222],
    [247, 184, 116],
    [141, 203, 139],
    [238, 146, 146],
    [186, 164, 224],
    [205, 172, 150],
    [235, 168, 210],
    [166, 184, 194],
    [218, 214, 108],
    [120, 205, 214],
];

impl PictureStyle {
    /// The colours of the style.
    pub(super) fn palette(self) -> &'static Palette {
        match self {
            Self::Light => &LIGHT,
            Self::Dark => &DARK,
        }
    }
}

impl Palette {
    /// The colour of the tile or tensor with a number, mixed with `paper` parts of 255 of the background.
    pub(super) fn hue(&self, number: usize, paper: u32) -> String {
        let mut color = String::from("#");
        for (part, ground) in HUES[number % HUES.len()].into_iter().zip(self.paper_part) {
            let full = part * self.strength / 10;
            let mixed = (full * (255 - paper.min(255)) + ground * paper.min(255)) / 255;
            let _ = write!(color, "{mixed:02x}");
        }
        color
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Luminance of `#rgb` or `#rrggbb`, from 0 to 1.
    fn luminance(color: &str) -> f64 {
        let digits = &color[1..];
        let part = |at: usize| {
            let text =
                if digits.len() == 3 { digits[at..=at].repeat(2) } else { digits[2 * at..2 * at + 2].to_owned() };
            let value = f64::from(u8::from_str_radix(&text, 16).unwrap()) / 255.0;
            if value <= 0.039_28 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(0) + 0.7152 * part(1) + 0.0722 * part(2)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn text_is_readable_on_paper_and_on_every_tile() {
        for style in [PictureStyle::Light, PictureStyle::Dark] {
            let palette = style.palette();
            for (text, least) in [(palette.ink, 7.0), (palette.text, 7.0), (palette.faint, 4.0), (palette.alarm, 4.5)] {
                assert!(contrast(text, palette.paper) >= least, "{style:?} {text}");
            }
            for number in 0..HUES.len() {
                for paper in [0, 76, 165, 255] {
                    assert!(contrast(palette.ink, &palette.hue(number, paper)) >= 4.0, "{style:?} {number} {paper}");
                }
            }
        }
    }
}
