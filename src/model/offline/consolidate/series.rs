//! Numbers that name one of many: report 1 and report 2 are two reports, port
//! 8080 and port 9090 are two values of one setting.
//!
//! # Limits
//!
//! What a number counts off is told by the noun beside it, so languages that
//! are not in the list have every number taken for a value: the newer one
//! wins.

/// Longest number of a series, in digits; longer ones are ids.
const DIGITS_MAX: usize = 7;

/// What may stand behind a noun's stem, a plural or a case: at most this, and
/// at most half as much as the stem.
const ENDING_CHARS_MAX: usize = 3;

/// Whether `number`, between `before` and `after` in a folded text, tells one
/// of a series from the others.
pub(super) fn is_number_of(before: &str, number: &str, after: &str) -> bool {
    let digits = number.trim_start_matches('#');
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || DIGITS_MAX < digits.len() {
        return false;
    }
    let is_marked = number.starts_with('#') || before.ends_with(['第', '제']);
    is_marked || is_behind_noun(before) || COUNTERS.iter().any(|counter| after.starts_with(counter))
}

fn is_behind_noun(before: &str) -> bool {
    let before = before.trim_end();
    if UNSPACED_NOUNS.iter().any(|noun| before.ends_with(noun)) {
        return true;
    }
    let mut words = before
        .rsplit(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let mut word = words.next().unwrap_or_default();
    if NUMBER_WORDS.contains(&word) {
        word = words.next().unwrap_or_default();
    }
    NOUNS.iter().any(|noun| {
        let chars_max = ENDING_CHARS_MAX.min(noun.chars().count() / 2);
        let ending = word.strip_prefix(noun);
        ending.is_some_and(|ending| ending.chars().count() <= chars_max)
    })
}

/// Words between the noun and its number.
const NUMBER_WORDS: &[&str] = &[
    "number",
    "no",
    "nr",
    "nummer",
    "n",
    "nº",
    "numéro",
    "numero",
    "número",
    "номер",
    "번호",
];

/// What is counted off, by stems, folded.
const NOUNS: &[&str] = &[
    // English
    "appendix",
    "article",
    "case",
    "chapter",
    "commit",
    "example",
    "exercise",
    "experiment",
    "figure",
    "invoice",
    "issue",
    "item",
    "lesson",
    "line",
    "milestone",
    "page",
    "paragraph",
    "part",
    "phase",
    "pr",
    "pull",
    "question",
    "report",
    "request",
    "rfc",
    "scenario",
    "section",
    "slide",
    "sprint",
    "step",
    "story",
    "table",
    "task",
    "test",
    "ticket",
    "volume",
    // German
    "abschnitt",
    "absatz",
    "anhang",
    "aufgabe",
    "beispiel",
    "bericht",
    "frage",
    "kapitel",
    "rechnung",
    "schritt",
    "seite",
    "tabelle",
    "teil",
    "übung",
    "vorgang",
    "zeile",
    // Spanish, Portuguese, Italian, French
    "annexe",
    "artículo",
    "artigo",
    "articolo",
    "capítulo",
    "capitolo",
    "caso",
    "chapitre",
    "ejemplo",
    "ejercicio",
    "esempio",
    "esercizio",
    "étape",
    "etapa",
    "exemple",
    "exemplo",
    "exercice",
    "exercício",
    "factura",
    "facture",
    "fattura",
    "fase",
    "informe",
    "ligne",
    "línea",
    "linha",
    "página",
    "pagina",
    "partie",
    "parte",
    "pregunta",
    "question",
    "rapport",
    "rapporto",
    "relatório",
    "riga",
    "seção",
    "sección",
    "sezione",
    "tabla",
    "tabela",
    "tabella",
    "tarea",
    "tarefa",
    "tâche",
    // Russian
    "вопрос",
    "глав",
    "задач",
    "отчет",
    "отчёт",
    "пример",
    "раздел",
    "страниц",
    "строк",
    "счёт",
    "таблиц",
    "тест",
    "шаг",
    "этап",
    // Korean, where nouns are words of their own
    "단계",
    "문제",
    "보고서",
    "사례",
    "이슈",
    "작업",
    "테스트",
    "티켓",
    "페이지",
    "표",
];

/// The same in scripts without spaces, right before the number.
const UNSPACED_NOUNS: &[&str] = &[
    "报告",
    "報告",
    "报告书",
    "報告書",
    "レポート",
    "章节",
    "任务",
    "任務",
    "タスク",
    "课题",
    "課題",
    "问题",
    "問題",
    "工单",
    "工單",
    "チケット",
    "步骤",
    "步驟",
    "ステップ",
    "手順",
    "测试",
    "測試",
    "テスト",
    "例",
    "表",
    "图",
    "圖",
    "図",
    "附录",
    "附錄",
    "付録",
    "ページ",
    "セクション",
    "イシュー",
];

/// What stands behind a number of a series, in such scripts.
const COUNTERS: &[&str] = &[
    "章", "节", "節", "回", "话", "話", "课", "課", "页", "頁", "条", "條", "장", "번째",
];
