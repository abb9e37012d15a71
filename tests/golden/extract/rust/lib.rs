//! Searches lines. FIXME: inner docs count as comments
#![allow(dead_code)]

extern crate alloc;

use std::collections::{BTreeMap, HashMap};
use std::fmt as f;
use crate::pattern::Pattern;
use super::walk::*;
use {regex::Regex, self::io::Reader};
pub use self::printer::Printer;

mod printer;
pub(crate) mod io {
    pub fn read_all(path: &str) -> Vec<u8> { Vec::new() }
}

pub const MAX_LINES: usize = 1 << 20;
static GRÖSSE: &str = "BUG: a string";

#[macro_export]
macro_rules! line {
    ($x:expr) => { Line::new($x) };
}

/// One line.
#[derive(Debug, Clone)]
pub struct Line<'a, T: Pattern + 'a = Plain> where T: Send {
    text: &'a str, // XXX borrow or own?
    found: Option<Match<T>>,
}

pub struct Offset(pub u64);
struct Unit;

pub enum Outcome { Found(Offset), Missing }

union Raw { a: u32, b: f32 }

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

pub trait Searcher: Send + f::Debug {
    type Error;
    const NAME: &'static str;
    fn search(&self, line: &Line<'_>) -> Result<Outcome>;
    fn reset(&mut self) {}
}

impl<'a, T: Pattern> Line<'a, T> {
    pub const fn new(text: &'a str) -> Self { Line { text, found: None } }

    /* HACK: /* nested */ still one comment */
    pub async unsafe fn find<P>(&self, pattern: P, mut at: usize) -> Option<usize>
    where
        P: Into<Regex>,
    {
        fn helper() {}
        let regex = pattern.into();
        regex.find_at::<u8>(self.text, at).map(|m| Offset(m.start() as u64));
        println!("{}", line!(at));
        None
    }
}

impl<T> Searcher for Grep<T> {
    type Error = io::Error;
    const NAME: &'static str = "grep";
    fn search(&self, line: &Line<'_>) -> Result<Outcome> {
        Ok(Outcome::Found(crate::io::position(line)))
    }
}

impl std::fmt::Display for Offset {}

extern "C" { fn strlen(s: *const u8) -> usize; }
