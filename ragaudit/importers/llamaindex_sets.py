"""LlamaIndex's evaluations and data sets: labels with ids, labels with texts, and what was retrieved for them."""

from collections.abc import Iterator, Mapping
from typing import Any

from ragaudit.errors import InputError
from ragaudit.importers.cells import listed
from ragaudit.importers.contexts import documents_of, set_context
from ragaudit.importers.draft import Draft, line_id
from ragaudit.importers.formats import Options, Row, Table
from ragaudit.importers.labels import set_gold
from ragaudit.importers.passages import hits_of
from ragaudit.importers.report import ImportReport
from ragaudit.importers.run_values import query_in

_QA = frozenset({"queries", "corpus", "relevant_docs"})
_RESULT = frozenset({"query", "expected_ids", "retrieved_ids"})


def what_set(value: Mapping[str, Any]) -> str | None:
    """Which of them a record is, as a sentence part, or None."""
    for names, what in ((_QA, "an EmbeddingQAFinetuneDataset"), (_RESULT, "RetrievalEvalResult")):
        if names <= set(value):
            return f"{what}, by {', '.join(sorted(names))}"
    if any("query" in each and "reference_contexts" in each for each in _items(value, "examples")):
        return "a LabelledRagDataset"
    if any("contexts" in each and "response" in each for each in _items(value, "predictions")):
        return "predictions of a LabelledRagDataset"
    return None


class DataSets:
    """Takes them record by record; examples wait for their predictions, which know their position and nothing else."""

    def __init__(self, options: Options, report: ImportReport) -> None:
        self._options, self._report = options, report
        self._examples: list[tuple[str, Mapping[str, Any]]] = []
        self._predictions: list[tuple[str, Mapping[str, Any]]] = []

    def take(self, value: Mapping[str, Any], number: int, place: str) -> Iterator[Row] | None:
        """The rows of one record; None = it is none of these."""
        if set(value) >= _QA:
            return self._labels_and_chunks(value, place)
        if set(value) >= _RESULT:
            return iter([(Table.TRACES, self._result(value, number, place))])
        if "examples" not in value and "predictions" not in value:
            return None
        self._examples += [(f"{place}#{n}", each) for n, each in enumerate(_items(value, "examples"), start=1)]
        self._predictions += [(f"{place}#{n}", each) for n, each in enumerate(_items(value, "predictions"), start=1)]
        return iter(())

    def joined(self) -> Iterator[Row]:
        """Examples with their predictions, by position.

        Raises:
            InputError: Predictions without their examples, or not as many.
        """
        if not self._predictions:
            for place, _ in self._examples:
                self._report.skip("an example without its prediction: pass the predictions as a further INPUT", place)
            return
        first = self._predictions[0][0].partition("#")[0]
        if not self._examples:
            raise InputError(
                f"{first}: predictions do not hold their queries. Pass rag_dataset.json as a further INPUT."
            )
        if len(self._predictions) != len(self._examples):
            what = f"{len(self._predictions)} predictions for {len(self._examples)} examples"
            raise InputError(f"{first}: {what}, and only their position joins them. Export both again.")
        self._report.note("predictions joined with their examples by position", first)
        pairs = zip(self._examples, self._predictions, strict=True)
        for number, ((place, example), (_, prediction)) in enumerate(pairs, start=1):
            if (question := query_in(example)) is None:
                self._report.skip("an example without a query", place)
                continue
            yield Table.TRACES, self._trace(Draft(line_id(number, question), question), example, prediction, place)

    def _trace(
        self, draft: Draft, example: Mapping[str, Any], prediction: Mapping[str, Any], place: str
    ) -> dict[str, Any]:
        reference, contexts = example.get("reference_answer"), example.get("reference_contexts")
        draft.observed("reference", reference if isinstance(reference, str) and reference else None)
        texts = contexts if isinstance(contexts, list) else None
        set_gold(draft, None, texts, self._options.texts, self._report, place)
        found = prediction.get("contexts")
        if isinstance(found, list):
            set_context(draft, [str(each) for each in found], self._report, place, self._options.texts)
        if isinstance(prediction.get("response"), str):
            draft.observed("answer", {"text": prediction["response"]})
        draft.settle(self._options.k)
        return draft.row()

    def _labels_and_chunks(self, value: Mapping[str, Any], place: str) -> Iterator[Row]:
        """Labels and chunks of an EmbeddingQAFinetuneDataset. There is no retrieval in it, so there is no trace."""
        corpus, relevant = value["corpus"], value["relevant_docs"]
        if not isinstance(corpus, Mapping) or not isinstance(relevant, Mapping):
            self._report.skip("corpus and relevant_docs are no objects", place)
            return
        self._report.note("labels and inventory only: log the retrievals for traces", place)
        for chunk_id, text in corpus.items():
            yield Table.CHUNKS, {"chunk_id": str(chunk_id), "text": str(text)}
        for query_id, ids in relevant.items():
            for each in ids if isinstance(ids, list) else ():
                if str(each) not in corpus:
                    self._report.note("gold ids that the corpus does not hold", f"{place}: {each}")
                if any(sign in f"{query_id}{each}" for sign in "\t\r\n"):
                    self._report.skip("an id that holds a tab or a line end cannot stand in qrels.tsv", place)
                    continue
                yield Table.QRELS, {"query_id": str(query_id), "id": str(each), "grade": 1.0}

    def _result(self, value: Mapping[str, Any], number: int, place: str) -> dict[str, Any]:
        """One evaluated query: the list of one retriever; nothing says how much of it a prompt would get."""
        question = str(value["query"])
        draft = Draft(line_id(number, question), question)
        ids, texts = (listed(value.get(key)) for key in ("retrieved_ids", "retrieved_texts"))
        documents = documents_of(ids, texts, self._report, place)
        if documents is not None:
            hits = hits_of(documents, self._report, place, texts=self._options.texts)
            draft.observed("arms", {"retriever": hits})
        expected = value.get("expected_ids")
        set_gold(draft, expected if isinstance(expected, list) else None, None, None, self._report, place)
        draft.settle(self._options.k)
        return draft.row()


def _items(value: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = value.get(key)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
