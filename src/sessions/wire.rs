//! Pieces of wire formats that both agents share, tolerant of anything.
//!
//! A field of an unexpected type is as good as absent: a record is only
//! damaged when it is not JSON. Strings are borrowed from the line where they
//! hold no escapes.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::sessions::unescape::long_text;

/// Implements the `visit_` methods for scalars that mean "nothing here".
macro_rules! absent {
    ($($method:ident($type:ty)),*) => {
        $(fn $method<E: Error>(self, _: $type) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        })*
    };
}

/// Reads the rest of a list and forgets it.
fn skip_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<(), A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

/// Reads the rest of an object and forgets it.
fn skip_object<'de, A: MapAccess<'de>>(mut object: A) -> Result<(), A::Error> {
    while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

/// A string, or nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Text<'a>(pub(super) Option<Cow<'a, str>>);

impl Text<'_> {
    /// The text, empty when absent.
    pub(super) fn get(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    pub(super) fn is(&self, expected: &str) -> bool {
        self.0.as_deref() == Some(expected)
    }

    /// The text unless it is absent or empty.
    pub(super) fn full(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }

    pub(super) fn into_string(self) -> String {
        self.0.map(Cow::into_owned).unwrap_or_default()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct TextVisitor<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for TextVisitor<'a> {
            type Value = Text<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Some(Cow::Borrowed(text))))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Some(Cow::Owned(text.to_owned()))))
            }
            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Text(None))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                skip_list(list).map(|()| Text(None))
            }
            fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
                skip_object(object).map(|()| Text(None))
            }
            absent!(
                visit_bool(bool),
                visit_i64(i64),
                visit_u64(u64),
                visit_f64(f64)
            );
        }
        from.deserialize_any(TextVisitor(PhantomData))
    }
}

/// A whole number, or nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Number(pub(super) Option<i64>);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct NumberVisitor;
        impl<'de> Visitor<'de> for NumberVisitor {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Number(Some(number)))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Number(i64::try_from(number).ok()))
            }
            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Number(None))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                skip_list(list).map(|()| Number(None))
            }
            fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
                skip_object(object).map(|()| Number(None))
            }
            absent!(visit_bool(bool), visit_f64(f64), visit_str(&str));
        }
        from.deserialize_any(NumberVisitor)
    }
}

/// A truth value, or nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Flag(pub(super) Option<bool>);

impl Flag {
    pub(super) fn is_set(self) -> bool {
        self.0 == Some(true)
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct FlagVisitor;
        impl<'de> Visitor<'de> for FlagVisitor {
            type Value = Flag;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }
            fn visit_bool<E: Error>(self, flag: bool) -> Result<Self::Value, E> {
                Ok(Flag(Some(flag)))
            }
            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Flag(None))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                skip_list(list).map(|()| Flag(None))
            }
            fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
                skip_object(object).map(|()| Flag(None))
            }
            absent!(
                visit_i64(i64),
                visit_u64(u64),
                visit_f64(f64),
                visit_str(&str)
            );
        }
        from.deserialize_any(FlagVisitor)
    }
}

/// An object of a known shape, or nothing.
#[derive(Debug, Clone)]
pub(super) struct Object<T>(pub(super) Option<Box<T>>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Object<T> {
    pub(super) fn get(&self) -> Option<&T> {
        self.0.as_deref()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }
            fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
                let value = T::deserialize(MapAccessDeserializer::new(object))?;
                Ok(Object(Some(Box::new(value))))
            }
            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Object(None))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                skip_list(list).map(|()| Object(None))
            }
            absent!(
                visit_bool(bool),
                visit_i64(i64),
                visit_u64(u64),
                visit_f64(f64),
                visit_str(&str)
            );
        }
        from.deserialize_any(ObjectVisitor(PhantomData))
    }
}

/// A list; empty when there is something else.
#[derive(Debug, Clone)]
pub(super) struct List<T>(pub(super) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ListVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
            type Value = List<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(element) = list.next_element()? {
                    all.push(element);
                }
                Ok(List(all))
            }
            fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
                skip_object(object).map(|()| List(Vec::new()))
            }
            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(List(Vec::new()))
            }
            absent!(
                visit_bool(bool),
                visit_i64(i64),
                visit_u64(u64),
                visit_f64(f64),
                visit_str(&str)
            );
        }
        from.deserialize_any(ListVisitor(PhantomData))
    }
}

/// Text, or a list of parts, or an object: how both agents write messages and
/// tool outputs.
#[derive(Debug, Clone, Default)]
pub(super) enum Content<'a> {
    #[default]
    None,
    Text(Cow<'a, str>),
    Parts(Vec<Object<Part<'a>>>),
    Map(Box<OutputMap<'a>>),
}

/// One part of a message.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Part<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, deserialize_with = "long_text")]
    pub(super) text: Text<'a>,
    // Claude Code
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_use_id: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Content<'a>,
    pub(super) is_error: Flag,
}

/// A tool output written as an object.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct OutputMap<'a> {
    #[serde(borrow, deserialize_with = "long_text")]
    pub(super) content: Text<'a>,
    #[serde(borrow, deserialize_with = "long_text")]
    pub(super) output: Text<'a>,
    pub(super) success: Flag,
    pub(super) metadata: Object<OutputMetadata>,
}

#[derive(Debug, Clone, Copy, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct OutputMetadata {
    pub(super) exit_code: Number,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ContentVisitor<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for ContentVisitor<'a> {
            type Value = Content<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = list.next_element()? {
                    parts.push(part);
                }
                Ok(Content::Parts(parts))
            }
            fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
                let map = OutputMap::deserialize(MapAccessDeserializer::new(object))?;
                Ok(Content::Map(Box::new(map)))
            }
            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Content::None)
            }
            absent!(
                visit_bool(bool),
                visit_i64(i64),
                visit_u64(u64),
                visit_f64(f64)
            );
        }
        from.deserialize_any(ContentVisitor(PhantomData))
    }
}

impl<'a> Content<'a> {
    /// The parts, a plain text counting as one text part.
    pub(super) fn into_parts(self) -> Vec<Part<'a>> {
        match self {
            Content::None => Vec::new(),
            Content::Text(text) => vec![Part {
                kind: Text(Some(Cow::Borrowed("text"))),
                text: Text(Some(text)),
                ..Part::default()
            }],
            Content::Parts(parts) => parts
                .into_iter()
                .filter_map(|part| part.0.map(|part| *part))
                .collect(),
            Content::Map(map) => vec![Part {
                kind: Text(Some(Cow::Borrowed("text"))),
                text: if map.content.0.is_some() {
                    map.content
                } else {
                    map.output
                },
                ..Part::default()
            }],
        }
    }
}

impl Content<'_> {
    /// All text parts, each on its own line, and the number of images.
    pub(super) fn into_text(self) -> (String, u32) {
        if let Content::Text(text) = self {
            return (text.into_owned(), 0);
        }
        let mut text = String::new();
        let mut media_count = 0;
        for part in self.into_parts() {
            if part.is_media() {
                media_count += 1;
                continue;
            }
            if !text.is_empty() && !text.ends_with('\n') && !part.text.get().is_empty() {
                text.push('\n');
            }
            text.push_str(part.text.get());
        }
        (text, media_count)
    }
}

impl Part<'_> {
    /// Images, audio and documents: counted, never kept.
    pub(super) fn is_media(&self) -> bool {
        let kind = self.kind.get();
        ["image", "audio", "document"]
            .iter()
            .any(|media| kind.contains(media))
    }
}
