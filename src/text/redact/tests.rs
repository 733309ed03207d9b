//! What is hidden and what must stay as it is. Secrets are put together at run
//! time, so that no scanner takes this file for a leak.

use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::{contains_secret, findings, redact_item, redact_str};
use crate::domain::item::{Item, ItemKind, Place, Provenance, Trust};
use crate::domain::text::Raw;

/// Letters and digits as a key has them, never the same twice in a row.
fn body(length: usize) -> String {
    let alphabet = b"aB3dE5gH7jK9mN1pQ2rS4tU6vW8xYz0";
    (0..length)
        .map(|index| char::from(alphabet[(index * 7 + index / 31) % alphabet.len()]))
        .collect()
}

fn hex(length: usize) -> String {
    let alphabet = b"0f1e2d3c4b5a69788796a5b4c3d2e1f0";
    (0..length)
        .map(|index| char::from(alphabet[(index * 5 + index / 32) % alphabet.len()]))
        .collect()
}

/// One of every kind that has a shape of its own.
fn tokens() -> Vec<(&'static str, String)> {
    let b = body;
    vec![
        ("openai-key", format!("sk-{}{}_-{}", "proj-", b(40), b(40))),
        (
            "openai-key",
            format!("sk-{}{}-{}", "svcacct-", b(30), b(30)),
        ),
        ("openai-key", format!("sk-{}{}.{}", "admin-", b(30), b(9))),
        (
            "anthropic-key",
            format!("sk-{}api03-{}-{}AA", "ant-", b(50), b(30)),
        ),
        ("openrouter-key", format!("sk-{}{}", "or-v1-", hex(64))),
        ("secret-key", format!("sk-{}", b(48))),
        ("github-token", format!("gh{}{}", "p_", b(36))),
        ("github-token", format!("gh{}{}", "o_", b(36))),
        ("github-token", format!("gh{}{}", "u_", b(36))),
        (
            "github-token",
            format!("gh{}12_{}.{}.{}", "s_", b(36), b(90), b(40)),
        ),
        ("github-token", format!("gh{}{}", "r_", b(70))),
        (
            "github-token",
            format!("github{}{}_{}", "_pat_", b(22), b(59)),
        ),
        ("gitlab-token", format!("gl{}{}", "pat-", b(20))),
        ("slack-token", format!("xox{}123456789012-{}", "b-", b(24))),
        (
            "slack-webhook",
            format!("hooks.slack.com{}T0AB12/B0CD34/{}", "/services/", b(24)),
        ),
        ("aws-key-id", format!("AK{}{}", "IA", "Q3EGRZ7YPLM2NDTK")),
        ("aws-key-id", format!("AS{}{}", "IA", "Q3EGRZ7YPLM2NDTK")),
        ("google-key", format!("AI{}{}", "za", b(35))),
        ("google-token", format!("ya29{}{}", ".a0", b(60))),
        ("google-secret", format!("GOC{}{}", "SPX-", b(28))),
        ("stripe-key", format!("sk{}{}", "_live_", b(24))),
        ("stripe-key", format!("rk{}{}", "_live_", b(24))),
        ("npm-token", format!("npm{}{}", "_", b(36))),
        ("pypi-token", format!("pypi{}IcHlwaS5vcmc{}", "-AgE", b(60))),
        ("huggingface-token", format!("hf{}{}", "_", b(34))),
        ("sendgrid-key", format!("SG{}{}.{}", ".", b(22), b(43))),
        ("digitalocean-token", format!("dop{}{}", "_v1_", hex(64))),
        ("docker-token", format!("dckr{}{}", "_pat_", b(27))),
        ("vault-token", format!("hv{}{}", "s.", b(90))),
        ("telegram-token", format!("123456789{}{}", ":AA", b(33))),
        (
            "jwt",
            ["ey", "J", &b(30), ".ey", "J", &b(60), ".", &b(43)].concat(),
        ),
    ]
}

/// Each kind in every place it turns up in: nothing of it may be left.
#[test]
fn no_token_survives_wherever_it_stands() {
    let mut wrong: Vec<String> = Vec::new();
    for (kind, token) in tokens() {
        let tag = format!("[redacted:{kind}]");
        for (before, after) in [
            ("", ""),
            ("use ", " now"),
            ("use ", "."),
            ("(", ")"),
            ("`", "`"),
            ("使用", "登录"),
            ("key:\\n", "\\n"),
            ("\u{1b}[32m", "\u{1b}[0m"),
            ("a%3D", "&b=1"),
            ("{\"k\":\"", "\"}"),
            ("{\\\"k\\\":\\\"", "\\\"}"),
        ] {
            let text = format!("{before}{token}{after}");
            let expected = format!("{before}{tag}{after}");
            if redact_str(&text).as_str() != expected {
                wrong.push(format!("{kind} in {before:?}: {}", redact_str(&text)));
            }
        }
        for (before, after) in [
            ("MY_API_KEY=", "\nNEXT=1"),
            ("export OPENAI_API_KEY='", "'"),
            ("\"api_key\": \"", "\", \"n\": 1"),
            ("https://", "@example.org/x"),
            ("https://x-access-token:", "@example.org/x"),
            ("Authorization: Bearer ", "\n"),
            ("curl -H \"Authorization: token ", "\" -d x"),
        ] {
            let text = format!("{before}{token}{after}");
            let redacted = redact_str(&text);
            let hidden = (redacted.as_str().strip_prefix(before))
                .and_then(|rest| rest.strip_suffix(after))
                .unwrap_or_default();
            let is_one_tag = hidden.starts_with("[redacted:")
                && hidden.find(']') == Some(hidden.len().saturating_sub(1));
            if !is_one_tag {
                wrong.push(format!("{kind} in {before:?}: {redacted}"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn a_token_wrapped_over_two_lines_goes_whole() {
    let (first, second) = (format!("sk-{}{}", "proj-", body(60)), body(30));
    for indent in ["", "    "] {
        let text = format!("key is\n{first}\n{indent}{second}\nnext line stays\n");
        let expected = "key is\n[redacted:openai-key]\nnext line stays\n";
        assert_eq!(redact_str(&text).as_str(), expected);
    }
    let hash = hex(40);
    let text = format!("{first}\n{hash}\n");
    assert_eq!(
        redact_str(&text).as_str(),
        format!("[redacted:openai-key]\n{hash}\n")
    );
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let redacted = redact_str(text);
    assert_eq!(redacted.as_str(), expected);
    assert_eq!(redact_str(redacted.as_str()), redacted, "not stable");
}

/// Before the secret, the secret, after it.
const ASSIGNED: &[(&str, &str, &str)] = &[
    ("DB_PASSWORD=", "tr0ub4dor", ""),
    ("DB_PASSWORD=\"", "correct horse battery staple", "\""),
    ("PGPASSWORD='", "Mein Hund heisst Rex", "' psql"),
    (
        "export AWS_SECRET_ACCESS_KEY=",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCY0123456789",
        "\n",
    ),
    (
        "aws_secret_access_key = ",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCY0123456789",
        "\n",
    ),
    ("SECRET_KEY_BASE=", "kkjsdfhkjhsdfkjhsdf", "\n"),
    ("JWT_SECRET=", "keyboard-cat-is-cute", "\n"),
    ("password: ", "hunter2hunter2", "\n"),
    ("password: \"", "hunter2", "\""),
    ("{\"password\": \"", "p4ss, w0rd", "\", \"user\": \"ada\"}"),
    (
        "{\\\"password\\\": \\\"",
        "s3cr3t p4ss",
        "\\\", \\\"user\\\": \\\"ada\\\"}",
    ),
    (
        "{\\\\\\\"client_secret\\\\\\\":\\\\\\\"",
        "a1b2c3d4e5",
        "\\\\\\\"}",
    ),
    ("{\"apiKey\":\"", "A1b2C3d4E5f6", "\"}"),
    ("{\n  \"clientSecret\":\n    \"", "A1b2C3d4E5f6", "\"\n}"),
    ("let password: &str = \"", "hunter22", "\";"),
    ("const apiToken: string = '", "A1b2C3d4E5f6", "';"),
    ("<password>", "hunter2hunter2", "</password>"),
    ("mysql --password=", "hunter2hunter2", " db"),
    ("tool --api-key ", "A1b2C3d4E5f6", " run"),
    ("machine example.org login ada password ", "hunter22x", "\n"),
    (
        "https://example.org/cb?access_token=",
        "A1b2C3d4E5f6",
        "&state=1",
    ),
    ("X-Api-Key: ", "A1b2C3d4E5f6G7h8", "\n"),
    (".header(\"X-Api-Key\", \"", "A1b2C3d4E5f6G7h8", "\")"),
    ("CREATE USER ada WITH PASSWORD '", "hunt3r2x!", "';"),
    (
        "AccountKey=",
        "q1W2e3R4t5Y6u7I8o9P0+/aa==",
        ";EndpointSuffix=x",
    ),
    (
        "//registry.example.org/:_authToken=",
        "A1b2C3d4E5f6G7h8",
        "\n",
    ),
    ("password=", "supersecret", "\n"),
    ("  password: ", "supersecret", "\n"),
    (
        "https://example.org/?client_secret=",
        "supersecretvalue",
        "&x=1",
    ),
    ("client_secret: \"", "supersecretvalue", "\","),
    ("the password is ", "hunter22", ", remember"),
    ("密码：", "hunter2hunter2", "。"),
    ("密码: \"", "hunter22", "\""),
    ("Passwort: ", "hunter2hunter2", "\n"),
    ("os.environ[\"SERVICE_TOKEN\"] = \"", "A1b2C3d4E5f6", "\""),
];

#[test]
fn passwords_go_whole_whatever_they_are_made_of() {
    for (end, left) in [
        ("&Zx9", ""),
        ("|x(y)z", ""),
        ("&Zx9.", "."),
        ("&user=ada", "&user=ada"),
        (" and the port is 8080", " and the port is 8080"),
    ] {
        let password = format!("Tr0ub{}", "4dor");
        let text = format!("the db password is {password}{end}");
        let redacted = redact_str(&text);
        let expected = format!("the db password is [redacted:assigned-secret]{left}");
        assert_eq!(redacted.as_str(), expected, "{end}");
        assert_eq!(redact_str(redacted.as_str()), redacted);
    }
}

#[test]
fn assigned_secrets_keep_name_and_quotes() {
    let mut wrong: Vec<String> = Vec::new();
    for (before, value, after) in ASSIGNED {
        let redacted = redact_str(&format!("{before}{value}{after}"));
        let expected = format!("{before}[redacted:assigned-secret]{after}");
        if redacted.as_str() != expected {
            wrong.push(redacted.into_string());
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn headers_urls_and_cookies() {
    let token = body(20);
    check(&format!("Bearer {token}"), "Bearer [redacted:bearer-token]");
    check(
        &format!("Authorization: Bearer {token}=="),
        "Authorization: Bearer [redacted:bearer-token]",
    );
    check(
        "authorization: Basic YWRhOmxvdmVsYWNl",
        "authorization: Basic [redacted:basic-credentials]",
    );
    check(
        "Cookie: sid=abcdefgh12; theme=dark; t=0123456789",
        "Cookie: sid=[redacted:cookie]; theme=dark; t=[redacted:cookie]",
    );
    check(
        "Set-Cookie: sid=abcdefgh12; Path=/absolutely; HttpOnly",
        "Set-Cookie: sid=[redacted:cookie]; Path=/absolutely; HttpOnly",
    );
    check(
        &format!("Authorization: Token {token}"),
        "Authorization: Token [redacted:authorization]",
    );
    check(
        &format!("{{\"authorization\": \"{token}\"}}"),
        "{\"authorization\": \"[redacted:authorization]\"}",
    );
    check(
        "{\"auths\":{\"r.io\":{\"auth\":\"YWRhOmxvdmVsYWNl\"}}}",
        "{\"auths\":{\"r.io\":{\"auth\":\"[redacted:basic-credentials]\"}}}",
    );
    check(
        &format!("https://a.blob.example.org/x?sv=1&sig={token}%3D"),
        "https://a.blob.example.org/x?sv=1&sig=[redacted:url-signature]",
    );
    check(
        "\"https:\\/\\/ada:l0ve@db.example.org\"",
        "\"https:\\/\\/ada:[redacted:url-password]@db.example.org\"",
    );
    check(
        "postgres://ada:l0ve@db.example.org/app",
        "postgres://ada:[redacted:url-password]@db.example.org/app",
    );
    check(
        "redis://:pa@ss@cache:6379",
        "redis://:[redacted:url-password]@cache:6379",
    );
}

#[test]
fn private_keys_go_whole_in_every_form() {
    let line = body(64);
    let tag = "[redacted:private-key]";
    for label in [
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ] {
        let begin = format!("-----{} {label}-----", "BEGIN");
        let end = format!("-----{} {label}-----", "END");
        check(
            &format!("a\n{begin}\n{line}\n{line}\n{end}\nb"),
            &format!("a\n{tag}\nb"),
        );
        check(
            &format!("{{\"k\":\"{begin}\\n{line}\\n{line}\\n{end}\\n\"}}"),
            &format!("{{\"k\":\"{tag}\\n\"}}"),
        );
        check(
            &format!("+{begin}\n+{line}\n+{line}=\n+{end}\n"),
            &format!("+{tag}\n"),
        );
        check(
            &format!("{begin}\n{line}\n{line}\nab12==\nprose follows"),
            &format!("{tag}\nprose follows"),
        );
        check(&format!("{begin}\\n{line}\\n{line}"), tag);
        check(
            &format!("{begin}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES\n\n{line}\n"),
            &format!("{tag}\n"),
        );
    }
    let mention = format!("-----{} PRIVATE KEY-----", "BEGIN");
    check(
        &format!("grep for `{mention}` first"),
        &format!("grep for `{mention}` first"),
    );
    check(&format!("{mention}\n...\n"), &format!("{mention}\n...\n"));
}

/// The shapes of code and prose that only look telling.
const HARMLESS: &[&str] = &[
    "<task-notification>task-0123456789abcdef0123456789</task-notification>",
    "pip install sk-learn sk-internationalization",
    "risk-01234567890123456789abcdefABCDEF",
    "token: Option<String>,",
    "pub token: Uint8Array,",
    "secret: &'static str,",
    "password: ${DB_PASSWORD}",
    "password: \"${DB_PASSWORD}\"",
    "password: {{ .Values.password }}",
    "API_KEY=<your-key>",
    "API_KEY=your-api-key-here",
    "API_KEY=xxxxxxxxxxxx",
    "API_KEY=$OTHER_KEY",
    "API_KEY=$(cat key.txt)",
    "API_KEY=OTHER_API_KEY",
    "token = get_token()",
    "token = self.tokens.next_token()",
    "let token = lexer.current_token;",
    "password = config.database.password",
    "apiKey: process.env.OPENAI_API_KEY,",
    "api_key=os.environ[\"OPENAI_API_KEY\"]",
    "token = engine::lexer::Token::new(kind)",
    "the secret: keep it simple",
    "The token: something that ends a word",
    "max_tokens: 100000000, total_tokens=12345678",
    "password_hash: argon2id",
    "\"token_count\": 123456789",
    "PWD=/home/ada/projects",
    "token_path = \"/var/run/secrets/token.jwt\"",
    "password: \"Enter your password\"",
    "password: \"Kennwort\"",
    "\"password\": \"请输入密码长度\"",
    "placeholder=\"Password\" type=\"password\"",
    "autocomplete=\"current-password\"",
    "Bearer authentication-middleware-layer",
    "Authorization: Bearer ${TOKEN}",
    "Authorization: Bearer <token>",
    "Authorization: Bearer YOUR_API_KEY_HERE",
    "Basic authentication is on, basic formatting too",
    "cookie: string; cookies: Cookie[]",
    "https://example.org:8080/a@b",
    "git@github.com:ada/engine.git ssh://git@github.com/ada/engine",
    "postgres://user:password@localhost/db",
    "postgres://${USER}:${PASS}@localhost/db",
    "f\"postgres://{user}:{password}@{host}\"",
    "postgres://%s:%s@%s/db",
    "jwt-token = \"0.12.0-alpha3\"",
    "if password == other_password {",
    "secret = \"comment.line.double-slash\"",
    "npm_config_registry=https://registry.example.org",
    "hf_transfer_enabled_for_all_downloads",
    "ghp_short glpat-x xoxb- AKIA AIza",
    "ASIAPACIFICMARKETING",
    "eyJust-a.word.or.two",
    "assert_eq!(token.kind, TokenKind::Ident);",
    "fn token(&self) -> &str { &self.token }",
    "--token-file path --password-stdin",
    "print(\"token=\" + repr(token))",
    "self.credentials = authorizer\n",
    "secret: something\n",
    "connect(user=name, password=password_value)",
    "connect(password=something, retries=3)",
    "    password: string;\n    password: required\n",
    "    token: punctuation\n",
    "the password is argon2id hashed and is required2 by nobody",
    "\"author\": \"ada:lovelace12345678\"",
    "Authorization: the_header_that_names_who_asks",
    "private_key: ed25519.Ed25519PrivateKey,",
    "postgres://[user[:password]@]host",
    "[redacted:github-token] [REDACTED_SECRET]",
    "password: [redacted:assigned-secret]",
    "password: [REDACTED_SECRET]",
    "thread_id=01a23018-3e69-74c3-962d-db16a636f6db",
];

#[test]
fn ids_and_hashes_are_unchanged() {
    for index in 0..200_usize {
        let id = hex(200);
        let commit = &id[index % 32..index % 32 + 40];
        let uuid = format!(
            "{}-{}-7{}-8{}-{}",
            &id[..8],
            &id[9..13],
            &id[20..23],
            &id[30..33],
            &id[40..52]
        );
        let integrity = format!("sha512-{}{}==", body(60), body(26));
        check(
            &format!("commit {commit}\n{uuid} \"{integrity}\""),
            &format!("commit {commit}\n{uuid} \"{integrity}\""),
        );
    }
}

#[test]
fn harmless_text_is_unchanged() {
    let changed: Vec<String> = (HARMLESS.iter().copied())
        .filter(|text| redact_str(text).as_str() != *text)
        .map(|text| redact_str(text).into_string())
        .collect();
    assert!(changed.is_empty(), "\n{}", changed.join("\n"));
}

#[test]
fn findings_name_kind_and_place() {
    let token = format!("gh{}{}", "p_", body(36));
    let text = format!("ä {token} ü");
    let found = findings(&text);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, "github-token");
    assert_eq!(&text[found[0].bytes.clone()], token);
    assert!(contains_secret(&text));
    assert!(!contains_secret("ä ü"));
}

#[test]
fn every_text_of_an_item_is_redacted() {
    let token = format!("gh{}{}", "p_", body(36));
    let item = Item {
        place: Place {
            part: 0,
            line_number: 1,
        },
        at: None,
        provenance: Provenance::Tool,
        trust: Trust::Own,
        kind: ItemKind::ToolCall {
            call_id: token.clone(),
            tool: token.clone(),
            files: vec![Raw::new(token.clone())],
        },
        text: Raw::new(token.clone()),
        media_count: 0,
    };
    assert!(!format!("{:?}", redact_item(item)).contains(&token));
}

fn piece() -> impl Strategy<Value = String> {
    let token = (0..tokens().len()).prop_map(|index| tokens()[index].1.clone());
    let fixed = [
        "password=",
        "\"token\": \"",
        "\\\"secret\\\":\\\"",
        "API_KEY=",
        "://u:",
        "@h",
        "Bearer ",
        "Cookie: a=",
        "\"",
        "'",
        "\\",
        "\n",
        " ",
        "=",
        ":",
        "]",
        "[",
        "[redacted:jwt]",
        "[redacted:",
        "[REDACTED_SECRET]",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "密码：",
        "sk-",
        "eyJ",
        ".",
        "hunter2hunter2",
        "aB3dE5gH7jK9mN1pQ2rS",
    ];
    prop_oneof![
        2 => token,
        6 => proptest::sample::select(fixed.to_vec()).prop_map(str::to_owned),
        2 => "\\PC{0,12}",
        1 => Just(String::new()),
    ]
}

proptest! {
    #[test]
    fn redacting_twice_changes_nothing(pieces in proptest::collection::vec(piece(), 0..12)) {
        let once = redact_str(&pieces.concat());
        prop_assert_eq!(redact_str(once.as_str()), once);
    }

    #[test]
    fn planted_tokens_never_survive(
        before in "[\\PC\n]{0,30}[ \n\"'(,=:]",
        after in "[ \n\"'),;][\\PC\n]{0,30}",
        pick in any::<proptest::sample::Index>(),
    ) {
        let all = tokens();
        let (_, token) = pick.get(&all);
        let redacted = redact_str(&format!("{before}{token}{after}"));
        prop_assert!(!redacted.as_str().contains(token.as_str()));
    }

    #[test]
    fn findings_lie_on_character_borders(text in "[\\PC\n\"'=:@/.-]{0,200}") {
        for finding in findings(&text) {
            prop_assert!(text.get(finding.bytes).is_some());
        }
    }
}
