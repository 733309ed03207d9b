//! Services as back ends, from what the configuration and the environment say.

use crate::cli::context::Context;
use crate::cli::report::{Class, Failure};
use crate::config::{Backend, Config};
use crate::domain::endpoint::{Endpoint, Header, HeaderValue, KeyPlace};
use crate::model::api::http::{Http, HttpSettings, ProxySettings};
use crate::model::api::key::Key;
use crate::model::api::{ApiModel, Kind, Limits, Service, ServiceParts};
use crate::sys::env::Variables;
use crate::sys::fs;
use crate::sys::ids::Ids;

/// A service's own address and the usual variable of its key.
const fn usual(kind: Kind) -> Option<(&'static str, &'static str)> {
    match kind {
        Kind::OpenAi => Some(("https://api.openai.com/v1", "OPENAI_API_KEY")),
        Kind::Anthropic => Some(("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY")),
        Kind::Chat => None,
    }
}

/// The back end that asks a service.
pub(crate) fn service(
    context: &Context,
    config: &Config,
    kind: Kind,
    model: Option<&str>,
) -> Result<ApiModel, Failure> {
    let label = kind.label();
    let settings = &config.model;
    // One model named is enough for both stages.
    let memories = &config.memories;
    let named = [&memories.extract_model, &memories.consolidation_model];
    let model = model.or_else(|| named.into_iter().find_map(|name| name.as_deref()));
    let model = model.ok_or_else(|| {
        let message = format!("the back end `{label}` has several models, and none is named");
        Failure::new(Class::Refused, message)
            .hint("set `extract_model = \"…\"` under `[memories]`; nothing was written")
    })?;
    let variables = &context.environment.variables;
    let endpoint = endpoint(config, kind)?;
    let key_place = key_place(config, kind, &endpoint);
    let key = (key_place.as_ref()).map(|place| key(place, variables, &endpoint));
    let not_zero = |tokens: usize| (tokens != 0).then_some(tokens);
    let service = Service::new(ServiceParts {
        kind,
        model: model.to_owned(),
        http: Http::new(HttpSettings {
            proxy: proxy(config, variables),
            endpoint,
            ca_file: settings.ca_file.clone(),
            headers: headers(config, variables)?,
            idle_seconds_max: settings.idle_seconds_max,
        }),
        key: key.transpose()?,
        key_place,
        limits: Limits {
            call_seconds_max: settings.call_seconds_max,
            output_tokens_max: settings.output_tokens_max,
            context_tokens: not_zero(settings.context_tokens),
            input_tokens_max: not_zero(settings.input_tokens_max),
        },
        clock: context.environment.clock(),
        ids: Ids::new(context.environment.seed.as_deref()),
    });
    Ok(ApiModel::new(service, config.worker.steps_max))
}

fn endpoint(config: &Config, kind: Kind) -> Result<Endpoint, Failure> {
    let own = usual(kind).map(|(endpoint, _)| endpoint);
    let text = config.model.endpoint.as_deref().or(own).ok_or_else(|| {
        let message = format!("the back end `{}` has no address", kind.label());
        Failure::new(Class::Refused, message).hint(
            "set `endpoint = \"http://localhost:11434/v1\"`, or where yours is, under `[model]`",
        )
    })?;
    Endpoint::parse(text).map_err(|error| {
        Failure::new(Class::Refused, format!("`{text}` cannot be asked"))
            .cause(error.to_string())
            .hint("mend `model.endpoint`; nothing was written")
    })
}

/// A service elsewhere that takes the place of the usual one is not given the
/// key of the usual one, unless it is named.
fn key_place(config: &Config, kind: Kind, endpoint: &Endpoint) -> Option<KeyPlace> {
    let settings = &config.model;
    if let Some(path) = &settings.key_file {
        return Some(KeyPlace::File(path.clone()));
    }
    if let Some(name) = &settings.key_env {
        return Some(KeyPlace::Variable(name.clone()));
    }
    let (own, variable) = usual(kind)?;
    let is_own = Endpoint::parse(own).is_ok_and(|own| own == *endpoint);
    is_own.then(|| KeyPlace::Variable(variable.to_owned()))
}

/// What a person should know of the key file, once in a command.
pub(crate) fn notice(config: &Config) -> Option<String> {
    let settings = &config.model;
    let is_service = |backend| {
        matches!(
            backend,
            Backend::OpenAi | Backend::Chat | Backend::Anthropic
        )
    };
    let asks_one = is_service(settings.backend) || config.worker.kind.is_some_and(is_service);
    let path = settings.key_file.as_ref().filter(|_| asks_one)?;
    let shown = path.display();
    fs::is_open_to_others(path).then(|| {
        format!("others on this machine may read the key in `{shown}`: `chmod 600 {shown}`")
    })
}

fn key(place: &KeyPlace, variables: &Variables, endpoint: &Endpoint) -> Result<Key, Failure> {
    Key::fetch(place, variables, endpoint.is_this_machine()).map_err(|error| {
        Failure::refused(&error).hint(
            "set `key_env` under `[model]` to the name of the variable that holds the key, or \
             `key_file` to a file; nothing was written",
        )
    })
}

fn headers(config: &Config, variables: &Variables) -> Result<Vec<(String, Key)>, Failure> {
    let header = |line: &String| {
        let refused = |problem: String| {
            Failure::new(Class::Refused, "a header of `model.headers` cannot be sent")
                .cause(problem)
                .hint("mend the line, or set the variable; nothing was written")
        };
        let Header { name, value } = Header::parse(line).map_err(refused)?;
        let value = match &value {
            HeaderValue::Text(text) => Key::open(text.trim()),
            HeaderValue::Variable(variable) => {
                let not_set = || refused(format!("`{name}`: `{variable}` is not set"));
                Key::new(variables.text(variable).ok_or_else(not_set)?.trim())
            }
        };
        let value = value
            .ok_or_else(|| refused(format!("`{name}`: its value cannot stand in a header")))?;
        Ok((name, value))
    };
    config.model.headers.iter().map(header).collect()
}

/// The proxy that the person set, else the one that the environment has for
/// sealed connections: there are no others but to this machine.
fn proxy(config: &Config, variables: &Variables) -> Option<ProxySettings> {
    let get = |name: &str| {
        let lower = name.to_lowercase();
        let text = variables.text(name).or_else(|| variables.text(&lower));
        text.map(str::to_owned)
    };
    match config.model.proxy.as_deref() {
        Some("none") => None,
        Some(url) => Some(ProxySettings {
            url: url.to_owned(),
            bypass: None,
        }),
        None => Some(ProxySettings {
            url: get("HTTPS_PROXY").or_else(|| get("ALL_PROXY"))?,
            bypass: get("NO_PROXY"),
        }),
    }
}
