//! Each line is a sentence and the cues it holds. `check` is the only code
//! that knows the API.

use super::{Cue, LANGUAGES, LanguageFile, find};

#[test]
fn every_language_file_is_well_formed() {
    for (language, data) in LANGUAGES {
        let file: LanguageFile = toml::from_str(data).unwrap_or_else(|e| panic!("{language}: {e}"));
        for (cue, lists) in file.kinds() {
            let words: Vec<_> = lists.anywhere.iter().chain(&lists.at_start).collect();
            assert!(!words.is_empty(), "{language}: {cue:?} has no phrase");
            for word in words {
                assert_eq!(word.trim(), word, "{language}");
                assert_eq!(&word.to_lowercase(), word, "{language}");
            }
        }
    }
}

#[test]
fn english() {
    check(
        "Always run the linter before you commit | default
         From now on use pnpm | default
         Never push to main | prohibition
         No, use the other table | correction
         no. put it back | correction
         Don't touch the lock file | correction
         use tabs instead of spaces | correction
         Remember that CI has no network | remember
         Forget about the old port | forget
         The port is now 9090 | correct
         Looks good, thanks! | accept
         It still fails | complaint, failure
         Fix the parser |
         By default the port is 8080 |
         Make sure to handle empty input |
         Never mind | 
         there is no problem with it |
         use the no-cache header |
         rename always_on to enabled |
         see always.rs |
         I know nothing about it |
         nobody said that |",
    );
}

#[test]
fn chinese() {
    check(
        "以后都用 pnpm，不要用 npm | default
         從現在開始用繁體中文回答 | default
         千万不要直接推到 main | prohibition
         不对，我说的是另一个文件 | correction
         不要改这个接口 | correction
         记住：测试要先跑 | remember
         忘掉之前的端口 | forget
         更正：端口是 9090 | correct
         可以了，谢谢 | accept
         还是报错 | complaint, failure
         请修复解析器 |
         不过这个问题不大 |
         请always用pnpm | default",
    );
}

#[test]
fn japanese() {
    check(
        "今後はpnpmを使ってください | default
         絶対にmainへ直接pushしないでください | prohibition
         いや、そうではなく別のファイルです | correction, correct
         CIにはネットワークがないことを覚えておいて | remember
         古いポートのことは忘れてください | forget
         訂正：ポートは9090です | correct
         動きました、ありがとう | accept
         まだ動かない | complaint
         パーサーを直してください |",
    );
}

#[test]
fn spanish() {
    check(
        "Siempre ejecuta las pruebas | default
         A partir de ahora usa pnpm | default
         Nunca subas a main | prohibition
         No, así no | correction
         Recuerda que CI no tiene red | remember
         Olvida el puerto viejo | forget
         El puerto ahora es 9090 | correct
         Perfecto, gracias | accept
         No funciona todavía | correction, complaint
         Arregla el analizador |",
    );
}

#[test]
fn german() {
    check(
        "Ab jetzt immer pnpm benutzen | default
         Künftig bitte auf Deutsch antworten | default
         Niemals direkt auf main pushen | prohibition
         Nein, ich meinte die andere Datei | correction
         Merk dir, dass CI kein Netz hat | remember
         Vergiss den alten Port | forget
         Der Port ist jetzt 9090 | correct
         Super, danke | accept
         Das geht immer noch nicht | complaint
         Repariere den Parser |
         Das Fenster ist zu klein | ",
    );
}

#[test]
fn french() {
    check(
        "Désormais, utilise pnpm | default
         Réponds toujours en français | default
         Ne pousse jamais sur main | prohibition
         Non, pas comme ça | correction
         N’oublie pas que la CI n'a pas de réseau | remember
         Oublie le vieux port | forget
         Le port est maintenant 9090 | correct
         Parfait, merci | accept
         Ça ne marche toujours pas | complaint
         Corrigez | correct
         Répare l'analyseur |",
    );
}

#[test]
fn portuguese() {
    check(
        "A partir de agora use pnpm | default
         Sempre rode os testes | default
         Nunca envie direto para main | prohibition
         Não, eu quis dizer o outro arquivo | correction
         Lembre-se de que a CI não tem rede | remember
         Esqueça a porta antiga | forget
         A porta agora é 9090 | correct
         Perfeito, obrigado | accept
         Ainda não | complaint
         Conserte o analisador |",
    );
}

#[test]
fn italian_russian_and_korean() {
    check(
        "D'ora in poi usa pnpm | default
         Non fare mai push su main | prohibition, correction
         No, intendevo l'altro file | correction
         Dimentica la vecchia porta | forget
         Grazie, adesso funziona | accept
         Отныне используй pnpm | default
         Никогда не пушь в main | prohibition
         Нет, я имел в виду другой файл | correction
         Забудь старый порт | forget
         Спасибо, теперь работает | accept
         앞으로는 pnpm을 사용해 주세요 | default
         절대 main에 푸시하지 마세요 | prohibition
         아니, 그게 아니라 다른 파일이야 | correction
         이전 포트는 잊어 주세요 | forget
         감사합니다, 잘 됩니다 | accept",
    );
}

#[test]
fn case_width_and_unicode_form_do_not_matter() {
    check(
        "ALWAYS use tabs | default
         ＡＬＷＡＹＳ use tabs | default
         TOUJOURS en français, DÉSORMAIS | default
         De\u{301}sormais, utilise pnpm | default
         DON’T touch it | correction",
    );
}

#[test]
fn descriptions_and_small_talk_state_nothing() {
    check(
        "It never did that before. |
         always busy I guess :) | hedge
         zsh was always slow |
         they never answer |
         Das war nie so langsam |
         immer beschäftigt, schätze ich | hedge
         il n'a jamais fait cela |
         antes nunca había fallado así |
         不知道，总是很慢 |
         いつも忙しいですね |
         раньше никогда такого не видел |
         I always want drafts under 100 words | default",
    );
    for text in [
        "always busy I guess",
        "immer so, schätze ich",
        "toujours, je suppose",
    ] {
        assert!(!find(text).states_default(), "{text}");
    }
}

#[test]
fn a_word_that_leads_over_hides_no_cue_of_the_beginning() {
    check(
        "Btw, actually use tabs | correction, correct, followup
         ok, and don't touch it | correction, followup
         Übrigens: lieber mit Tabs | correction, followup
         okay then |followup
         and here's CI | followup
         android is slow |
         oktober |
         In this repo entries are one line | convention
         In diesem Projekt gilt Zeilenlänge 80 | convention
         本项目提交信息写一行 | convention",
    );
}

#[test]
fn a_change_of_mind_and_an_unwanted_thing_are_corrections() {
    check(
        "I changed my mind about the name | correction
         I don't want slowapi. | correction
         Ich will kein Mock | correction
         Je ne veux pas de mock | correction
         我不想用 mock | correction
         no it isn't | correction, complaint
         I'll do it myself | complaint",
    );
}

#[track_caller]
fn check(table: &str) {
    for line in table.lines() {
        let (sentence, expected) = line.rsplit_once('|').unwrap();
        let found = find(sentence.trim());
        let names: Vec<_> = Cue::ALL
            .into_iter()
            .filter(|cue| found.has(*cue))
            .map(|cue| format!("{cue:?}").to_lowercase())
            .collect();
        assert_eq!(names.join(", "), expected.trim(), "{sentence}");
    }
}
