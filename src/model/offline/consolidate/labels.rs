//! What recaps call their lists, in the languages they are written in.

use crate::model::offline::shape::Outcome;

/// A part of a recap's task, or of the recap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Requests,
    Preferences,
    Steps,
    Failures,
    Knowledge,
    References,
    Outcome,
    Keywords,
    Context,
}

/// Lower-case names. A name of two or more words also counts with more words
/// behind it (`failures and how to do differently`).
const NAMES: &[(Label, &[&str])] = &[
    (
        Label::Requests,
        &[
            "requests",
            "request",
            "user requests",
            "anfragen",
            "peticiones",
            "demandes",
            "pedidos",
            "请求",
            "要求",
            "依頼",
            "요청",
        ],
    ),
    (
        Label::Preferences,
        &[
            "preference signals",
            "user preferences",
            "preferences",
            "preference",
            "präferenzen",
            "präferenz",
            "präferenzsignale",
            "vorlieben",
            "preferencias",
            "preferencia",
            "préférences",
            "préférence",
            "preferências",
            "preferência",
            "preferenze",
            "предпочтения",
            "偏好信号",
            "偏好",
            "用户偏好",
            "使用者偏好",
            "好み",
            "ユーザーの好み",
            "선호",
        ],
    ),
    (
        Label::Steps,
        &[
            "key steps",
            "steps",
            "wichtige schritte",
            "schritte",
            "pasos clave",
            "pasos",
            "étapes clés",
            "étapes",
            "passos principais",
            "passos",
            "passi",
            "шаги",
            "关键步骤",
            "關鍵步驟",
            "步骤",
            "步驟",
            "主な手順",
            "手順",
            "주요 단계",
        ],
    ),
    (
        Label::Failures,
        &[
            "failures and how to do differently",
            "failures",
            "failure",
            "what failed",
            "fehlschläge",
            "fehler",
            "fallos",
            "échecs",
            "falhas",
            "errori",
            "ошибки",
            "失败与改进",
            "失败",
            "失敗",
            "失敗と改善",
            "失败和改进方法",
            "教训",
            "실패",
        ],
    ),
    (
        Label::Knowledge,
        &[
            "reusable knowledge",
            "knowledge",
            "learnings",
            "wiederverwendbares wissen",
            "wissen",
            "erkenntnisse",
            "conocimiento reutilizable",
            "conocimiento",
            "connaissances réutilisables",
            "connaissances",
            "conhecimento reutilizável",
            "conhecimento",
            "conoscenze",
            "знания",
            "可复用知识",
            "可重用知识",
            "可複用知識",
            "知识",
            "知識",
            "经验",
            "再利用可能な知識",
            "学んだこと",
            "지식",
        ],
    ),
    (
        Label::References,
        &[
            "references",
            "reference",
            "evidence",
            "referenzen",
            "belege",
            "referencias",
            "références",
            "referências",
            "riferimenti",
            "ссылки",
            "参考资料",
            "参考",
            "參考",
            "参照",
            "참고",
        ],
    ),
    (
        Label::Outcome,
        &[
            "outcome",
            "ergebnis",
            "resultado",
            "résultat",
            "risultato",
            "результат",
            "结果",
            "結果",
            "결과",
        ],
    ),
    (
        Label::Keywords,
        &[
            "keywords",
            "stichwörter",
            "schlüsselwörter",
            "palabras clave",
            "mots-clés",
            "palavras-chave",
            "parole chiave",
            "ключевые слова",
            "关键词",
            "關鍵詞",
            "キーワード",
            "키워드",
        ],
    ),
    (
        Label::Context,
        &[
            "rollout context",
            "session context",
            "context",
            "kontext",
            "contexto",
            "contexte",
            "contesto",
            "контекст",
            "背景",
            "上下文",
            "文脈",
        ],
    ),
];

const TASK_WORDS: &[&str] = &[
    "task",
    "aufgabe",
    "tarea",
    "tâche",
    "tarefa",
    "compito",
    "задача",
    "任务",
    "任務",
    "タスク",
    "작업",
];

const OUTCOMES: &[(Outcome, &[&str])] = &[
    (
        Outcome::Success,
        &[
            "success",
            "succeeded",
            "done",
            "erfolg",
            "éxito",
            "succès",
            "sucesso",
            "successo",
            "успех",
            "成功",
            "완료",
            "성공",
        ],
    ),
    (
        Outcome::Partial,
        &[
            "partial",
            "partially",
            "teilweise",
            "parcial",
            "partiel",
            "parziale",
            "частично",
            "部分",
            "一部",
            "부분",
        ],
    ),
    (
        Outcome::Uncertain,
        &[
            "uncertain",
            "unknown",
            "unklar",
            "incierto",
            "incertain",
            "incerto",
            "неясно",
            "不确定",
            "不確定",
            "不明",
            "불확실",
        ],
    ),
    (
        Outcome::Fail,
        &[
            "fail",
            "failed",
            "failure",
            "fehlgeschlagen",
            "fallo",
            "échec",
            "falha",
            "fallito",
            "неудача",
            "失败",
            "失敗",
            "실패",
        ],
    ),
];

/// What people and models write into a list that has nothing in it.
const NOTHING: &[&str] = &[
    "none", "none.", "n/a", "-", "keine", "ninguna", "aucune", "nenhuma", "无", "無", "なし",
    "没有", "нет",
];

/// A label at the start of `text`, and the words after its colon. Without a
/// colon the label must be all there is.
pub(super) fn find(text: &str) -> Option<(Label, &str)> {
    let text = text.trim();
    let (name, rest) = match text.split_once([':', '：']) {
        Some((name, rest)) => (name, rest.trim()),
        None => (text, ""),
    };
    let name = name.trim().to_lowercase();
    NAMES.iter().find_map(|(label, names)| {
        names
            .iter()
            .any(|known| name == *known || begins_with_all_of(&name, known))
            .then_some((*label, rest))
    })
}

fn begins_with_all_of(name: &str, known: &str) -> bool {
    known.contains(' ')
        && name
            .strip_prefix(known)
            .is_some_and(|rest| rest.starts_with([' ', '(', '/']))
}

/// `Task 2: title`, `任务 2：标题`: the title.
pub(super) fn task_title(heading: &str) -> Option<&str> {
    let word_end = heading
        .find(|c: char| c.is_whitespace() || c.is_ascii_digit() || ":：.".contains(c))
        .unwrap_or(heading.len());
    let word = heading[..word_end].to_lowercase();
    if !TASK_WORDS.contains(&word.as_str()) {
        return None;
    }
    let rest = heading[word_end..].trim_start();
    let after_number = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let has_number = after_number.len() < rest.len();
    let title = after_number.trim_start();
    match title.strip_prefix([':', '：', '.', '-', '–', '—']) {
        Some(title) => Some(title.trim()),
        None if has_number => Some(title),
        None => None,
    }
}

/// The outcome that a text begins with.
pub(super) fn outcome(text: &str) -> Option<Outcome> {
    let text = text.trim().trim_matches(['*', '`', '"']).to_lowercase();
    OUTCOMES.iter().find_map(|(outcome, words)| {
        words
            .iter()
            .any(|word| text.starts_with(word))
            .then_some(*outcome)
    })
}

/// The outcome that a text is, and nothing else.
pub(super) fn outcome_word(text: &str) -> Option<Outcome> {
    let text = text
        .trim()
        .trim_matches(['*', '`', '"', '.'])
        .to_lowercase();
    OUTCOMES
        .iter()
        .find_map(|(outcome, words)| words.contains(&text.as_str()).then_some(*outcome))
}

/// `refund sign, success` without the outcome.
pub(super) fn without_outcome(title: &str) -> &str {
    match title.rsplit_once([',', '，']) {
        Some((before, after)) if outcome_word(after).is_some() => before.trim(),
        _ => title,
    }
}

/// Whether an item only says that there is none.
pub(super) fn is_nothing(text: &str) -> bool {
    NOTHING.contains(&text.to_lowercase().as_str())
}
