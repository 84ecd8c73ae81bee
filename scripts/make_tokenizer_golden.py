#!/usr/bin/env python3
"""Makes tests/golden/tokenizers.json.gz: small tokenizers of the kinds that language models use,
trained on data/text, with what Hugging Face's tokenizers compute from hard texts.

    pip install tokenizers==0.23.*
    scripts/make_tokenizer_golden.py [--out tests/golden]

The regular expressions are those of the models named: their text decides which words there are.
Training gives some pieces other ids in each run, so a new file differs from the old one in more than
what was changed.
"""
import argparse
import gzip
import json
import pathlib

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

ROOT = pathlib.Path(__file__).resolve().parent.parent

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"

TEXTS = [
    "", " ", "  ", "\n", "a", "Hello world", "Hello, world! It's 2024.", " leading and trailing ",
    "I'm don't WE'LL they'VE o'clock 'tis it'S ’s", "tabs\tand\r\nlines\n\n\nand  spaces   here",
    "  \n \n  x \n", "a\r\n\r\nb\r c", "\t\tif (x == 0) {\n\t\treturn -1;\n\t}\n",
    "1 12 123 1234 12345 3.14159 1e-10 1,000,000", "١٢٣ ४५६ ½ ² Ⅷ ① 𝟙𝟚", "café cafe\u0301 naïve Å Å ﬁ ß ẞ ſ",
    "İstanbul ısı ΌΣΟΣ Ǆ ǅ ǆ", "你好，世界。中文字符", "日本語のテキスト カタカナ", "한국어 텍스트",
    "مرحبا بالعالم العَرَبِيَّة", "हिन्दी में पाठ", "ข้อความภาษาไทย", "שלום עולם", "😀 😃👍🏽 👩‍👩‍👧 🇩🇪 ❤️",
    "zero\u200bwidth \u200d joiner \u00ad soft \ufeff mark", "controls \x00 \x07 \x1b \x7f \x85 \x9f end",
    "spaces \u00a0 \u1680 \u180e \u2003 \u2028 \u3000 end", "\ufffd replaced \ufffd\ufffd", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "supercalifragilisticexpialidocious " * 3, "x" * 150, "HTTPServer camelCase snake_case __init__ kebab-case",
    "https://example.org/a/b?c=d&e=f#g mail@example.org", "!!! ??? ... --- === /// #$%^&*()",
    "<s>Hello</s> <unk> <pad>", "<|endoftext|>start<|im_start|>user\nHi<|im_end|>\n", "a <|im_end|> b  <|im_end|>  c",
    "[CLS] a [MASK] b[MASK]c  [MASK]  d [SEP]", "<mask> a <mask>b  <mask>", "token Token  TOKEN tokens mytoken token.",
    "▁ low ▁▁ line ▁x", "Ġ Ċ ĉ Ł", "<0x41> <0x0A> <0xZZ>", "a##b ##c #", "do not don't is n't . , ! ? 's 've", "end</w> of</w>",
    "The Jargon File is a compendium of hacker slang.", "foo\u0300\u0301bar \u0301 alone", "mixed 中 a文b 字1",
]
PAIRS = [("Hello world", "How are you?"), ("", "x"), ("a [SEP] b", "")]


def corpus():
    text = gzip.open(ROOT / "data/text/jargon-4.4.7.txt.gz").read().decode()
    return text[:400_000].split("\n\n") + TEXTS[4:29] * 20


def byte_pairs(size, special, *, alphabet=(), limit=None, **model):
    marks = {key: model[key] for key in ("continuing_subword_prefix", "end_of_word_suffix")
             if key in model}
    if limit is not None:
        marks["limit_alphabet"] = limit
    return models.BPE(**model), trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, show_progress=False,
        initial_alphabet=list(alphabet), **marks)


def train(model, trainer, normalizer, pre_tokenizer, decoder):
    tokenizer = Tokenizer(model)
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    if decoder:
        tokenizer.decoder = decoder
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def byte_level(special, normalizer=None, split=None, size=700, **model):
    if split is None:
        split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return train(*byte_pairs(size, special, alphabet=pre_tokenizers.ByteLevel.alphabet(), **model),
                 normalizer, split, decoders.ByteLevel())


def split_bytes(first, behavior="isolated", invert=False):
    if isinstance(first, str):
        first = pre_tokenizers.Split(Regex(first), behavior, invert)
    return pre_tokenizers.Sequence([first, pre_tokenizers.ByteLevel(False, use_regex=False)])


def template(tokenizer, single, pair, *special):
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, pair=pair,
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in special])


def gpt2():
    tokenizer = byte_level(["<|endoftext|>"])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    return tokenizer


def roberta():
    tokenizer = byte_level(["<s>", "<pad>", "</s>", "<unk>"],
                           split=pre_tokenizers.ByteLevel(add_prefix_space=True))
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return tokenizer


def llama3():
    tokenizer = byte_level(["<|begin|>", "<|im_start|>", "<|im_end|>"], split=split_bytes(LLAMA3),
                           ignore_merges=True)
    # What merges do not reach: only ignore_merges makes it one piece.
    description = json.loads(tokenizer.to_str())
    description["model"]["vocab"]["ĠFileĠis"] = 700
    description["model"]["vocab"]["Ġcompendium"] = 701
    description["model"]["vocab"]["12345"] = 702
    tokenizer = Tokenizer.from_str(json.dumps(description))
    template(tokenizer, "<|begin|> $A", "<|begin|> $A <|begin|> $B", "<|begin|>")
    tokenizer.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False), tokenizer.post_processor])
    return tokenizer


def qwen2():
    tokenizer = byte_level(["<|endoftext|>", "<|im_start|>", "<|im_end|>"], normalizers.NFC(),
                           split_bytes(QWEN2))
    tokenizer.add_tokens(["token", AddedToken("Hello", normalized=False)])
    return tokenizer


def smollm2():
    return byte_level(["<|endoftext|>", "<|im_start|>", "<|im_end|>"], split=pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]))


def sentence_pieces(normalizer, pre_tokenizer, decoder):
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    parts = byte_pairs(900, special, limit=80, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokenizer = train(*parts, normalizer, pre_tokenizer, decoder)
    # Trainers make added tokens of the bytes, models do not.
    description = json.loads(tokenizer.to_str())
    description["added_tokens"] = description["added_tokens"][:3]
    # Files converted from SentencePiece have every way to make a piece, the best pieces first.
    vocabulary = description["model"]["vocab"]
    description["model"]["merges"] = [
        [piece[:i], piece[i:]] for piece in sorted(vocabulary, key=vocabulary.get)
        for i in range(1, len(piece)) if piece not in special
        and piece[:i] in vocabulary and piece[i:] in vocabulary]
    tokenizer = Tokenizer.from_str(json.dumps(description))
    template(tokenizer, "<s> $A", "<s> $A <s> $B", "<s>")
    return tokenizer


def sentence_decoder():
    return decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                              decoders.Strip(" ", 1, 0)])


def llama2():
    return sentence_pieces(
        normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None,
        sentence_decoder())


def mistral():
    return sentence_pieces(None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False),
                           sentence_decoder())


def word_pieces(normalizer, **trainer):
    tokenizer = train(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100),
                      trainers.WordPieceTrainer(
                          vocab_size=700, show_progress=False,
                          special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], **trainer),
                      normalizer, pre_tokenizers.BertPreTokenizer(), decoders.WordPiece())
    return tokenizer


def bert_uncased():
    tokenizer = word_pieces(normalizers.BertNormalizer())
    template(tokenizer, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", "[CLS]", "[SEP]")
    return tokenizer


def bert_cased():
    tokenizer = word_pieces(normalizers.BertNormalizer(lowercase=False, strip_accents=None),
                            limit_alphabet=120)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def clip():
    model, trainer = byte_pairs(700, ["<|startoftext|>", "<|endoftext|>"],
                                alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                unk_token="<|endoftext|>", end_of_word_suffix="</w>")
    return train(model, trainer, normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]),
        split_bytes(CLIP, "removed", True), decoders.BPEDecoder("</w>"))


def prefixes():
    """Marks in front of what continues a word; unknown characters, each on its own."""
    parts = byte_pairs(500, ["[UNK]"], limit=60, unk_token="[UNK]", continuing_subword_prefix="##")
    return train(*parts, normalizers.NFKC(), pre_tokenizers.Whitespace(), decoders.WordPiece(cleanup=False))


def metaspaces():
    """No byte fallback and no unknown piece: what is unknown vanishes."""
    return train(*byte_pairs(500, ["<s>"], limit=60), normalizers.Strip(),
                 pre_tokenizers.Metaspace(prepend_scheme="always"), decoders.Metaspace())


def many_steps():
    tokenizer = train(
        *byte_pairs(500, ["[UNK]"], limit=60, unk_token="[UNK]", fuse_unk=True),
        normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(),
                              normalizers.Strip(left=True, right=False), normalizers.Lowercase(),
                              normalizers.Replace("slang", "jargon")]),
        pre_tokenizers.Sequence([
            pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("contiguous"),
            pre_tokenizers.Digits(), pre_tokenizers.Split("a", "merged_with_next"),
            pre_tokenizers.Split(Regex("[eo]+"), "merged_with_previous"),
            pre_tokenizers.Split(Regex(r"\w"), "contiguous", invert=True)]), None)
    tokenizer.add_tokens([AddedToken("token", single_word=True, normalized=True),
                          AddedToken("Café", normalized=True), AddedToken("World", normalized=False),
                          AddedToken("he", single_word=True, lstrip=True, rstrip=True)])
    tokenizer.add_special_tokens([AddedToken("[MASK]", lstrip=True, rstrip=True)])
    return tokenizer


CASES = [gpt2, roberta, llama3, qwen2, smollm2, llama2, mistral, bert_uncased, bert_cased, clip,
         prefixes, metaspaces, many_steps]
MERGES_AS_STRINGS = {"gpt2", "llama2"}  # as older files have them


def case(make):
    tokenizer = make()
    description = json.loads(tokenizer.to_str())
    if make.__name__ in MERGES_AS_STRINGS:
        merges = description["model"]["merges"]
        description["model"]["merges"] = [" ".join(merge) for merge in merges]
    tokenizer = Tokenizer.from_str(json.dumps(description))
    encoded = [tokenizer.encode(text).ids for text in TEXTS]
    return {
        "name": make.__name__, "tokenizer": description, "ids": encoded,
        "plain_ids": [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS],
        "pair_ids": [tokenizer.encode(*pair).ids for pair in PAIRS],
        "decoded": [tokenizer.decode(ids) for ids in encoded],
        "decoded_all": [tokenizer.decode(ids, skip_special_tokens=False) for ids in encoded],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "tests/golden")
    args = parser.parse_args()
    golden = {"texts": TEXTS, "pairs": PAIRS, "cases": [case(make) for make in CASES]}
    text = json.dumps(golden, ensure_ascii=False, separators=(",", ":"))
    path = args.out / "tokenizers.json.gz"
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{path}: {path.stat().st_size} bytes, {len(CASES)} tokenizers, {len(TEXTS)} texts")


if __name__ == "__main__":
    main()
