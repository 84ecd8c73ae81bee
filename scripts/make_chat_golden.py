#!/usr/bin/env python3
"""Makes tests/golden/chats.json: chats as Jinja renders them.

    pip install jinja2
    scripts/make_chat_golden.py [--real templates.json] [--out tests/golden]

"chats" has short templates, which do what those of the families do. "real" has only what the
templates of published models render to, not their text: with --real, a JSON file gives the template
of each of our names, such as {"llama-3.1": "{{- bos_token }}..."}; without, that part stays as it is.
With TIDEMARK_CHAT_TEMPLATES=templates.json, ChatTemplate.RecognisesPublishedTemplates compares these
templates themselves.
"""
import argparse
import json
import pathlib

import jinja2
import jinja2.sandbox

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Templates in the forms of the families, shortened.
CHAT_ML = """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are a "test", it's said.<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}""".replace("it's", "it\\'s")
CHAT_ML_WITH_DASHES = """
{%- if messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- else %}
    {{- '<|im_start|>system\\nBe brief.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {#- The first is written already. #}
    {%- if not (loop.first and message.role == "system") %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
LLAMA2_CHAT = """{% if messages[0]['role'] == 'system' %}
{% set loop_messages = messages[1:] %}
{% set system_message = messages[0]['content'] %}
{% else %}
{% set loop_messages = messages %}
{% set system_message = false %}
{% endif %}
{%- for message in loop_messages %}
{% if loop.index0 == 0 and system_message != false %}
{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}
{% else %}
{% set content = message['content'] %}
{% endif %}
{%- if message['role'] == 'user' -%}
{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}
{%- else -%}
{{ ' ' + content.strip() + ' ' + eos_token }}
{%- endif -%}
{% endfor %}"""
LLAMA3_CHAT = """{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>

'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>

' }}{% endif %}"""
LLAMA31_CHAT = """{{- bos_token }}
{%- set date_string = "26 Jul 2024" %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none and tools %}
    {{- "There are tools." }}
{%- endif %}
{{- "Cutting Knowledge Date: December 2023\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}"""
MISTRAL_CHAT = """{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% else %}{{ message['content'] + eos_token}}{% endif %}{% endfor %}"""
MISTRAL_WITH_SYSTEM = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if PLACE and system_message is defined %}
            {{- "OPEN" + system_message + "\\n\\n" + message["content"] + "CLOSE" }}
        {%- else %}
            {{- "OPEN" + message["content"] + "CLOSE" }}
        {%- endif %}
    {%- elif message.tool_calls %}
        {{- "[TOOL_CALLS]" }}
    {%- elif message["role"] == "assistant" %}
        {{- ANSWER + eos_token }}
    {%- endif %}
{%- endfor %}
"""


def mistral(place, opening, closing, answer):
    parts = {"PLACE": place, "OPEN": opening, "CLOSE": closing, "ANSWER": answer}
    text = MISTRAL_WITH_SYSTEM
    for part, by in parts.items():
        text = text.replace(part, by)
    return text


MISTRAL_OWN_TURN = """{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}{{ '[INST]' + message['content'] + '[/INST]' }}{% elif message['role'] == 'system' %}{{ '[SYSTEM_PROMPT]' + message['content'] + '[/SYSTEM_PROMPT]' }}{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token }}{% endif %}{% endfor %}"""
ZEPHYR_CHAT = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% else %}
{{ '<|assistant|>\\n'  + message['content'] + eos_token }}
{% endif %}
{% endfor %}
{% if add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}"""
CHATS = [("chatml", CHAT_ML), ("chatml", CHAT_ML_WITH_DASHES), ("chatml", "{{ bos_token }}" + CHAT_ML),
         ("llama-2", LLAMA2_CHAT), ("llama-3", LLAMA3_CHAT), ("llama-3.1", LLAMA31_CHAT),
         ("mistral", MISTRAL_CHAT), ("mistral", MISTRAL_CHAT.replace("eos_token}}", "eos_token + ' '}}")),
         ("mistral", mistral("loop.first", " [INST] ", " [/INST]", '" " + message["content"]')),
         ("mistral", mistral("loop.last", "[INST] ", "[/INST]", '" " + message["content"]')),
         ("mistral", mistral("loop.last", "[INST] ", "[/INST]", '" " + message["content"]|trim')),
         ("mistral", mistral("loop.last", "[INST]", "[/INST]", 'message["content"]')),
         ("mistral", MISTRAL_OWN_TURN),
         ("mistral", MISTRAL_OWN_TURN.replace("[INST]", "[INST] ").replace("PROMPT]'", "PROMPT] '", 1)
          .replace("message['content'] + eos", "' ' + message['content'] + eos")),
         ("zephyr", ZEPHYR_CHAT), ("zephyr", ZEPHYR_CHAT.replace("eos_token }}\n", "eos_token + '\\n' }}")
          .replace("{{ '<|assistant|>' }}\n", "{{ '<|assistant|>\\n' }}"))]
CONVERSATIONS = [
    [("user", "Hi")],
    [("user", " What is\n2 + 2? "), ("assistant", " Four.\n"), ("user", "Danke, 谢谢 😀"),
     ("assistant", "\u00a0You're welcome\u3000")],
    [("system", " Answer \"briefly\". "), ("user", "a"), ("assistant", ""), ("user", "\n")],
    [("system", "Be brief."), ("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d")],
]


def render(template, conversation, prompt):
    """None for a chat that the template refuses."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    begin = "<|begin_of_text|>" if "eot_id" in template else "<s>"

    def refuse(why):
        raise jinja2.TemplateError(why)
    environment.globals["raise_exception"] = refuse
    try:
        return environment.from_string(template).render(
            messages=[{"role": role, "content": content} for role, content in conversation],
            add_generation_prompt=prompt, bos_token=begin, eos_token="</s>")
    except jinja2.TemplateError:
        return None


def rendered(template, refuses_system=False):
    chats = [None if refuses_system and each[0][0] == "system" else each for each in CONVERSATIONS]
    return {"plain": [each and render(template, each, False) for each in chats],
            "prompted": [each and render(template, each, True) for each in chats]}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", type=pathlib.Path, help="the templates of models, by our names")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "tests/golden")
    args = parser.parse_args()
    path = args.out / "chats.json"
    real = json.loads(path.read_text())["real"] if path.exists() else {}
    if args.real:
        real = {name: rendered(template)
                for name, template in json.loads(args.real.read_text()).items()}
    # The short templates have no checks of their own.
    chats = [{"family": family, "template": template,
              **rendered(template, family == "mistral" and "system" not in template)}
             for family, template in CHATS]
    golden = {"conversations": CONVERSATIONS, "chats": chats, "real": real}
    path.write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n")
    print(f"{path}: {path.stat().st_size} bytes, {len(chats)} templates, {len(real)} models")


if __name__ == "__main__":
    main()
