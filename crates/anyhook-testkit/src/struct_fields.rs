//! Names of the fields that a type deserializes, to compare them with a table.

use std::fmt;

use serde::de::value::Error;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// The fields of a struct that derives `Deserialize`.
pub fn struct_fields<'de, T: Deserialize<'de>>() -> Vec<&'static str> {
    let mut fields = Vec::new();
    let asked = T::deserialize(FieldCollector(&mut fields));
    assert!(asked.is_err(), "it deserializes from nothing");
    assert!(!fields.is_empty(), "it is no struct");
    fields
}

/// Notes the fields that a type asks for, then fails.
struct FieldCollector<'a>(&'a mut Vec<&'static str>);

impl<'de> Deserializer<'de> for FieldCollector<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.extend_from_slice(fields);
        self.deserialize_any(visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(Error::custom(NoValue))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        option unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier
        ignored_any
    }
}

struct NoValue;

impl fmt::Display for NoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no value")
    }
}
