//! SQL statements that work in both databases.
//!
//! Owns the columns, the statement builder and the reading of result rows. Opens
//! no connection: a [`Store`](crate::Store) runs what is built here.

use rusqlite::types::Value as SqlValue;

use crate::error::{Result, StoreError};
use crate::row::saturating_i64;

/// One result row, read from left to right.
#[derive(Debug)]
pub struct ResultRow(std::vec::IntoIter<SqlValue>);

impl ResultRow {
    pub fn new(values: Vec<SqlValue>) -> Self {
        Self(values.into_iter())
    }

    pub fn int(&mut self) -> Result<i64> {
        match self.0.next() {
            Some(SqlValue::Integer(number)) => Ok(number),
            Some(SqlValue::Null) => Ok(0),
            _ => Err(StoreError::Shape("an integer")),
        }
    }

    pub fn real(&mut self) -> Result<f64> {
        match self.0.next() {
            Some(SqlValue::Real(number)) => Ok(number),
            Some(SqlValue::Null) => Ok(0.0),
            _ => Err(StoreError::Shape("a number")),
        }
    }

    pub fn bytes(&mut self) -> Result<Vec<u8>> {
        match self.0.next() {
            Some(SqlValue::Blob(bytes)) => Ok(bytes),
            Some(SqlValue::Null) => Ok(Vec::new()),
            _ => Err(StoreError::Shape("bytes")),
        }
    }

    pub fn text(&mut self) -> Result<String> {
        self.optional()?.ok_or(StoreError::Shape("a text"))
    }

    pub fn optional(&mut self) -> Result<Option<String>> {
        match self.0.next() {
            Some(SqlValue::Text(text)) => Ok(Some(text)),
            Some(SqlValue::Null) => Ok(None),
            _ => Err(StoreError::Shape("a text")),
        }
    }
}

/// A statement that grows together with its arguments.
#[derive(Debug, Clone)]
pub struct Statement {
    pub sql: String,
    pub args: Vec<SqlValue>,
}

impl Statement {
    pub fn new(sql: impl Into<String>) -> Self {
        Self {
            sql: sql.into(),
            args: Vec::new(),
        }
    }

    pub fn push(&mut self, sql: &str) -> &mut Self {
        self.sql.push_str(sql);
        self
    }

    fn bind(&mut self, value: SqlValue) -> &mut Self {
        self.args.push(value);
        // Both databases count `$1`, `$2` … from left to right.
        let placeholder = format!("${}", self.args.len());
        self.push(&placeholder)
    }

    pub fn int(&mut self, number: i64) -> &mut Self {
        self.bind(SqlValue::Integer(number))
    }

    /// A number of rows.
    pub fn size(&mut self, size: usize) -> &mut Self {
        self.int(saturating_i64(size))
    }

    pub fn text(&mut self, text: &str) -> &mut Self {
        self.bind(SqlValue::Text(text.replace('\0', "\u{fffd}")))
    }
}
