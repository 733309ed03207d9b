//! A worker's words to its operator, found where memory should be.
//!
//! Only a paragraph counts that *begins* with such words: a list item may well
//! say "let me know" because the person wants or hates it.

use std::ops::Range;

use crate::text::document::{BlockKind, Document};

/// How replies begin, in lower case, in the languages workers answer in.
const BEGINNINGS: &[&str] = &[
    "here is the updated",
    "here's the updated",
    "here are the updated",
    "here is the new",
    "here is your",
    "i'm sorry",
    "i am sorry",
    "i apologize",
    "i apologise",
    "sorry, ",
    "i need permission",
    "i need your permission",
    "i need access",
    "i don't have permission",
    "i do not have permission",
    "i don't have access",
    "i cannot ",
    "i can't ",
    "i'm unable",
    "i am unable",
    "i was unable",
    "let me know",
    "would you like me",
    "do you want me",
    "should i ",
    "shall i ",
    "sure, ",
    "sure! ",
    "certainly",
    "as an ai",
    "i have updated",
    "i've updated",
    "i will now",
    "i'll now",
    "please confirm",
    "please provide",
    "please let me",
    "hier ist die aktualisierte",
    "hier sind die aktualisierten",
    "es tut mir leid",
    "entschuldigung",
    "ich kann leider",
    "soll ich ",
    "möchten sie",
    "möchtest du",
    "ich habe die datei",
    "voici le fichier",
    "voici la mise",
    "je suis désolé",
    "souhaitez-vous",
    "voulez-vous que",
    "aquí está el",
    "lo siento",
    "¿quieres que",
    "¿desea que",
    "desculpe",
    "ecco il file",
    "mi dispiace",
    "抱歉",
    "对不起",
    "對不起",
    "以下是更新",
    "这是更新后的",
    "這是更新後的",
    "我需要权限",
    "我需要權限",
    "我无法",
    "我無法",
    "需要我",
    "请问是否",
    "好的，",
    "申し訳",
    "更新したファイル",
    "以下が更新",
    "필요하시면",
    "죄송",
    "업데이트된",
    "извините",
    "вот обновл",
];

/// Paragraphs that speak to a person.
pub(super) fn find(text: &str, document: &Document) -> Vec<Range<usize>> {
    (document.blocks.iter())
        .filter(|block| block.kind == BlockKind::Paragraph)
        .filter_map(|block| {
            let own = text[block.bytes.clone()].trim();
            let head: String = own.chars().take(60).collect();
            let head = head.to_lowercase().replace('’', "'");
            let is_reply = BEGINNINGS.iter().any(|start| head.starts_with(start));
            let start = block.bytes.start;
            is_reply.then(|| start..start + own.lines().next().unwrap_or_default().len())
        })
        .collect()
}
