//! Messages, and the events that mirror them.

use crate::domain::item::Provenance;
use crate::sessions::citation::{FoundIn, split_answer, thread_ids};
use crate::sessions::codex::mirror::Collapsed;
use crate::sessions::codex::reader::Reader;
use crate::sessions::codex::wire::{LineMetadata, MemoryCitation, Passthrough, Payload};
use crate::sessions::draft::{Origin, Said, Standing};
use crate::sessions::wire::{Content, Object, Part, Text};
use crate::sessions::words::{self, Piece, split_user_text};

/// Messages looked at for the mark of our own prompts.
const PROMPTS_MAX: u32 = 4;

/// A message of the role of the user, taken apart.
#[derive(Default)]
struct Request<'a> {
    pieces: Vec<(Provenance, &'a str)>,
    /// All that may be a person's, headers included: what an event repeats.
    typed: Vec<&'a str>,
    /// The transcript itself says that a person wrote it.
    is_sure: bool,
    media_count: u32,
}

impl Reader<'_> {
    pub(super) fn user_message(&mut self, origin: Origin, payload: Payload<'_>) {
        let parts = payload.content.into_parts();
        let request = request_of(&parts, payload.passthrough.get());
        for text in &request.typed {
            self.look_for_mark(text);
        }
        self.knows_authors |= request.is_sure;
        self.note_environment(&request.pieces);
        self.add_request(origin, request);
    }

    fn add_request(&mut self, origin: Origin, request: Request<'_>) {
        let is_human = |(provenance, _): &(Provenance, &str)| *provenance == Provenance::Human;
        let has_human = request.pieces.iter().any(is_human);
        let typed = Collapsed::of(&request.typed.join("\n"));
        let event = has_human
            .then(|| self.users.other_half(&typed, false))
            .flatten();
        let standing = match &event {
            Some(_) => Standing::Confirmed,
            None if request.is_sure => Standing::Sure,
            None => Standing::Unconfirmed,
        };
        if has_human && event.is_none() {
            self.begin_turn_by_message();
        }
        let mut media_count = request.media_count;
        let mut added = Vec::new();
        for (provenance, text) in request.pieces {
            let said = Said::message(provenance, text);
            if provenance == Provenance::Human {
                let media_count = std::mem::take(&mut media_count);
                added.push(self.push(origin, said.standing(standing).with_media(media_count)));
            } else {
                self.push(origin, said);
            }
        }
        self.has_human |= has_human;
        match event {
            Some(drafts) => drafts.into_iter().for_each(|draft| self.take_back(draft)),
            None if has_human => self.users.wait(added, typed, false, origin.line_number),
            None => {}
        }
    }

    pub(super) fn assistant_message(
        &mut self,
        origin: Origin,
        payload: Payload<'_>,
        metadata: Option<&LineMetadata>,
    ) {
        let (text, media_count) = payload.content.into_text();
        if metadata.is_some_and(|data| data.compaction_output.is_set()) {
            self.push(origin, Said::message(Provenance::HarnessContext, text));
            return;
        }
        let (visible, cited) = split_answer(&text);
        let answer = (text.as_str(), visible.as_str());
        (self.citations).push(
            FoundIn::Answer,
            origin.line_number,
            origin.at,
            answer,
            cited,
        );
        let compared = Collapsed::of(&visible);
        match self.answers.other_half(&compared, false) {
            Some(events) => events.into_iter().for_each(|event| self.take_back(event)),
            None => self
                .answers
                .wait(Vec::new(), compared, false, origin.line_number),
        }
        if !visible.is_empty() || media_count > 0 {
            let said = Said::message(answer_provenance(&payload.phase), visible);
            self.push(origin, said.with_media(media_count));
        }
    }

    /// Words between agents.
    pub(super) fn agent_message(&mut self, origin: Origin, content: Content<'_>) {
        let (text, media_count) = content.into_text();
        if !text.trim().is_empty() {
            let said = Said::message(Provenance::OtherAgent, text);
            self.push(origin, said.with_media(media_count));
        }
    }

    /// What a person sent, as an event.
    pub(super) fn user_event(&mut self, origin: Origin, text: &str) {
        self.has_user_events = true;
        if text.trim().is_empty() {
            return;
        }
        self.look_for_mark(text);
        let compared = Collapsed::of(text);
        let message = self.users.other_half(&compared, true);
        // Where the transcript says who wrote what, the event may word it
        // differently.
        let message = message.or_else(|| {
            let knows_authors = self.knows_authors;
            knows_authors
                .then(|| self.users.neighbour(origin.line_number))
                .flatten()
        });
        if let Some(drafts) = message {
            for id in drafts {
                if let Some(draft) = self.drafts.get_mut(id) {
                    draft.standing = Standing::Confirmed;
                }
            }
            return;
        }
        self.begin_turn_by_message();
        let mut added = Vec::new();
        for Piece { provenance, text } in split_user_text(text) {
            self.has_human |= provenance == Provenance::Human;
            let said = Said::message(provenance, text).standing(Standing::EventOnly);
            added.push(self.push(origin, said));
        }
        self.users.wait(added, compared, true, origin.line_number);
    }

    /// What the assistant answered, as an event.
    pub(super) fn agent_event(
        &mut self,
        origin: Origin,
        text: &str,
        phase: &Text<'_>,
        citation: &Object<MemoryCitation<'_>>,
    ) {
        let (visible, mut cited) = split_answer(text);
        if let Some(citation) = citation.get() {
            thread_ids(citation.thread_ids.0.iter().map(Text::get), &mut cited);
        }
        let answer = (text, visible.as_str());
        (self.citations).push(FoundIn::Event, origin.line_number, origin.at, answer, cited);
        let compared = Collapsed::of(&visible);
        if visible.is_empty() || self.answers.other_half(&compared, true).is_some() {
            return;
        }
        let said = Said::message(answer_provenance(phase), visible.as_str());
        let id = self.push(origin, said.standing(Standing::EventOnly));
        self.answers
            .wait(vec![id], compared, true, origin.line_number);
    }

    fn look_for_mark(&mut self, text: &str) {
        if self.prompts < PROMPTS_MAX {
            self.prompts += 1;
            self.is_ours |= words::is_worker_prompt(text);
        }
    }

    /// Rollouts whose meta has no folder name it in the environment block.
    fn note_environment(&mut self, pieces: &[(Provenance, &str)]) {
        if self.meta.as_ref().is_some_and(|meta| meta.cwd.is_some()) {
            return;
        }
        let contexts = pieces
            .iter()
            .filter(|(who, _)| *who == Provenance::HarnessContext);
        let mut folders = contexts.filter_map(|(_, text)| words::folder_of_environment(text));
        if let Some(folder) = folders.next() {
            self.meta.get_or_insert_default().cwd = Some(folder.to_owned());
        }
    }
}

fn request_of<'a>(parts: &'a [Part<'_>], said: Option<&Passthrough<'_>>) -> Request<'a> {
    let mut request = Request::default();
    for (index, part) in parts.iter().enumerate() {
        if part.is_media() {
            request.media_count += 1;
            continue;
        }
        let text = part.text.get();
        if is_media_wrapper(text) {
            continue;
        }
        match said.and_then(|said| said.provenance(index)) {
            stated @ (Some(Provenance::Human) | None) => {
                request.is_sure |= stated.is_some();
                let pieces = split_user_text(text).into_iter();
                let pieces = pieces.map(|piece| (piece.provenance, piece.text));
                request.pieces.extend(pieces);
                request.typed.push(text);
            }
            Some(other) => request.pieces.push((other, text)),
        }
    }
    let has_human = (request.pieces.iter()).any(|(who, _)| *who == Provenance::Human);
    if !has_human && request.media_count > 0 {
        // An image and no words is still a request.
        request.pieces.push((Provenance::Human, ""));
    }
    request
}

impl Passthrough<'_> {
    /// Who wrote part `index`, where the transcript says so.
    fn provenance(&self, index: usize) -> Option<Provenance> {
        let said = self.content_item_metadata.0.get(index);
        let said = said.and_then(|said| said.get()?.provenance.get());
        if let Some(said) = said.filter(|said| said.kind.full().is_some()) {
            return Some(match said.kind.get() {
                "user" => Provenance::Human,
                "tool" if said.namespace.is("collaboration") => Provenance::OtherAgent,
                _ => Provenance::HarnessContext,
            });
        }
        match self.content_item_kinds.0.get(index)?.full()? {
            "unknown" => None,
            kind if kind.starts_with("user.") => Some(Provenance::Human),
            kind if kind.starts_with("multi_agent.") => Some(Provenance::OtherAgent),
            _ => Some(Provenance::HarnessContext),
        }
    }
}

/// Generations without phases have no commentary either.
fn answer_provenance(phase: &Text<'_>) -> Provenance {
    if phase.is("commentary") {
        Provenance::AssistantCommentary
    } else {
        Provenance::AssistantFinal
    }
}

/// Texts that only frame an image.
fn is_media_wrapper(text: &str) -> bool {
    let text = text.trim();
    let opens = text.starts_with("<image name=") && text.ends_with('>') && !text.contains('\n');
    opens || text == "</image>" || text == "<image>"
}
