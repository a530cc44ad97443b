#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A hundred architectures of torchvision, timm and transformers through the PyTorch doors: which compile, which are right.

usage: torch_models.py FOLDER [--bin build/bin] [--stage export|compile|table]... [--filter RE] [--table FILE] [--forms static dynamic traced scripted]
                       [--cpu x86-64-v3] [--again] [--jobs N]

Weights are random and seeded, configurations small, modules in eval mode. Each model gets a folder FOLDER/<name>/ with an archive for each form
(static.pt2, dynamic.pt2 with unknown batch and sequence, traced.pt, scripted.pt), two sets of inputs, the second of other sizes for dynamic.pt2,
and the outputs of PyTorch in float64 where it can. Stage compile runs tc-compile and tc-run and keeps the result until the tools change;
right is --max-rel 2e-5 of each output's largest value. The table counts, then says which operators are missing by models that need them.
Stage export needs an environment with requirements-bench.txt and timm==1.0.31.
"""
import argparse
import collections
import concurrent.futures
import copy
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("OMP_NUM_THREADS", "1")
FORMS = {"static": "static.pt2", "dynamic": "dynamic.pt2", "traced": "traced.pt", "scripted": "scripted.pt"}
MODELS = {}


class Late(Exception):
    pass


# ---------------------------------------------------------------------------------------------------------------- models


def image_model(build, size, batch=2, channels=3, depth=None):
    """Images of unknown batch."""
    import torch

    shape = (channels, size, size) if depth is None else (channels, depth, size, size)
    return build(), lambda b: [torch.randn(b, *shape)], [{0: "batch"}], (batch, 3)


def vision(name, size=64, **options):
    def make():
        import torchvision

        return image_model(lambda: getattr(torchvision.models, name)(weights=None, **options), size)

    MODELS["tv_" + name] = make


def segmentation(name):
    def make():
        import torchvision

        return image_model(lambda: getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None, num_classes=5), 64)

    MODELS["tv_" + name] = make


def video(name, size=32, depth=8):
    def make():
        import torchvision

        return image_model(lambda: getattr(torchvision.models.video, name)(weights=None, num_classes=10), size, depth=depth, batch=2)

    MODELS["tv_" + name] = make


def timm_model(name, size=64, **options):
    def make():
        import timm

        return image_model(lambda: timm.create_model(name, pretrained=False, num_classes=10, **options), size)

    MODELS["timm_" + name] = make


TINY = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=100, max_position_embeddings=64)


def text(name, config, model, inputs=("input_ids", "attention_mask"), kwargs=None, **options):
    """Tokens of unknown batch and sequence."""

    def make():
        import torch
        import transformers

        settings = dict(TINY, **options)
        settings = {k: v for k, v in settings.items() if v is not None}
        module = getattr(transformers, model)(getattr(transformers, config)(**settings))

        def draw(b, t=7):
            ids, mask = torch.randint(3, 90, (b, t)), torch.ones(b, t, dtype=torch.int64)
            mask[-1, -2:] = 0
            given = {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": torch.randint(3, 90, (b, 5)), "token_type_ids": torch.zeros_like(ids)}
            return [given[n] for n in inputs]

        dims = [{0: "batch"} if n == "decoder_input_ids" else {0: "batch", 1: "sequence"} for n in inputs]
        return module, draw, dims, (2, 3), list(inputs), {"return_dict": False, **(kwargs or {})}

    MODELS["hf_" + name] = make


def pixels(name, config, model, kwargs=None, size=32, **options):
    def make():
        import torch
        import transformers

        module = getattr(transformers, model)(getattr(transformers, config)(**options))
        return module, lambda b: [torch.randn(b, 3, size, size)], [{0: "batch"}], (2, 3), ["pixel_values"], {"return_dict": False, **(kwargs or {})}

    MODELS["hf_" + name] = make


def declare():
    for name in ("resnet18", "mobilenet_v2", "mobilenet_v3_small", "mnasnet0_5", "shufflenet_v2_x0_5", "squeezenet1_1", "densenet121", "efficientnet_b0",
                 "regnet_y_400mf", "regnet_x_400mf", "googlenet", "maxvit_t"):  # fmt: skip
        vision(name, **({"init_weights": True} if name == "googlenet" else {}), size=224 if name == "maxvit_t" else 64, num_classes=10)
    vision("inception_v3", size=96, init_weights=True, num_classes=10)
    vision("convnext_tiny", num_classes=10)
    vision("swin_t", num_classes=10)
    vision("swin_v2_t", num_classes=10)
    for name in ("lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large", "fcn_resnet50"):
        segmentation(name)
    for name in ("r3d_18", "mc3_18", "r2plus1d_18"):
        video(name)

    def vit():
        import torchvision

        build = lambda: torchvision.models.VisionTransformer(64, 16, 2, 4, 64, 128, num_classes=10)
        return image_model(build, 64)

    def vgg():
        import torchvision

        layers = torchvision.models.vgg.make_layers([16, "M", 32, "M", 32, 32, "M"], batch_norm=True)
        module = torchvision.models.VGG(layers, num_classes=10)
        import torch

        module.classifier[0] = torch.nn.Linear(32 * 7 * 7, 4096)
        return image_model(lambda: module, 64)

    MODELS["tv_vit"], MODELS["tv_vgg_bn"] = vit, vgg
    for name in ("resnet10t", "resnet26d", "resnext26ts", "seresnext26t_32x4d", "skresnet18", "ecaresnet26t", "res2net50_14w_8s", "dla34", "hrnet_w18_small",
                 "mobilenetv3_small_050", "mobilenetv4_conv_small", "efficientnet_lite0", "tf_efficientnetv2_b0", "mixnet_s", "ghostnet_050", "ghostnetv2_100",
                 "repvgg_a0", "repghostnet_050", "fastvit_t8", "fbnetc_100", "hardcorenas_a", "tinynet_e", "lcnet_050", "rexnet_100", "regnetz_005",
                 "convnext_atto", "convnextv2_atto", "edgenext_xx_small", "mobileone_s0", "mobilevit_xxs", "mobilevitv2_050", "efficientformerv2_s0", "poolformer_s12",
                 "starnet_s1", "inception_next_atto", "nfnet_l0", "dm_nfnet_f0", "darknet17", "cspresnet50", "vovnet39a", "gcresnext26ts", "levit_128s",
                 "repvit_m0_9", "shvit_s1", "efficientvit_b0", "efficientvit_m0", "hgnet_tiny", "selecsls42", "semnasnet_075", "spnasnet_100", "test_vit",
                 "test_resnet", "test_convnext", "test_efficientnet"):  # fmt: skip
        options = {"dm_nfnet_f0": {"num_classes": 10}}.get(name, {})
        options.pop("num_classes", None)
        timm_model(name, size={"levit_128s": 224, "efficientformerv2_s0": 224, "efficientvit_m0": 224, "test_vit": 160}.get(name, 64), **options)
    for name, options in {
        "vit_tiny_patch16_224": {}, "deit_tiny_patch16_224": {}, "eva02_tiny_patch14_224": {"size": 56}, "xcit_nano_12_p16_224": {}, "swin_tiny_patch4_window7_224": {"size": 224},
        "swinv2_cr_tiny_224": {"size": 224}, "pvt_v2_b0": {"size": 224}, "coat_lite_tiny": {"size": 224}, "cait_xxs24_224": {}, "mixer_s32_224": {}, "gmlp_ti16_224": {},
        "resmlp_12_224": {}, "pit_ti_224": {"size": 224}, "tnt_s_legacy_patch16_224": {"size": 224}, "twins_svt_small": {"size": 224}, "convmixer_768_32": {},
        "nest_tiny_jx": {"size": 224}, "crossvit_tiny_240": {"size": 240}, "beit_base_patch16_224": {"depth": 2, "embed_dim": 48, "num_heads": 4}, "volo_d1_224": {"size": 224},
        "maxvit_rmlp_pico_rw_256": {"size": 256}, "coatnet_nano_rw_224": {"size": 224}, "halonet26t": {"size": 256}, "lambda_resnet26t": {"size": 256}, "hiera_tiny_224": {"size": 224},
        "focalnet_tiny_srf": {"size": 224}, "davit_tiny": {"size": 224}, "mvitv2_tiny": {"size": 224}, "nextvit_small": {"size": 64}, "visformer_tiny": {"size": 224},
    }.items():  # fmt: skip
        options = dict(options)
        size = options.pop("size", 64)
        if size == 64 or size == 56:
            if name not in ("convmixer_768_32", "nextvit_small"):
                options["img_size"] = size
        timm_model(name, size=size, **options)
    encoder = ("input_ids", "attention_mask")
    text("bert", "BertConfig", "BertModel")
    text("bert_sdpa_types", "BertConfig", "BertForSequenceClassification", inputs=("input_ids", "attention_mask", "token_type_ids"))
    text("roberta", "RobertaConfig", "RobertaModel", max_position_embeddings=80)
    text("distilbert", "DistilBertConfig", "DistilBertModel", hidden_size=None, dim=32, n_layers=2, n_heads=4, hidden_dim=64, num_hidden_layers=None, num_attention_heads=None)
    text("albert", "AlbertConfig", "AlbertModel", embedding_size=16)
    text("electra", "ElectraConfig", "ElectraModel", embedding_size=16)
    text("deberta_v2", "DebertaV2Config", "DebertaV2Model", relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=16)
    text("mpnet", "MPNetConfig", "MPNetModel", max_position_embeddings=80)
    text("xlm_roberta", "XLMRobertaConfig", "XLMRobertaModel", max_position_embeddings=80)
    text("camembert", "CamembertConfig", "CamembertForTokenClassification", max_position_embeddings=80)
    text("convbert", "ConvBertConfig", "ConvBertModel", embedding_size=32)
    text("squeezebert", "SqueezeBertConfig", "SqueezeBertModel", embedding_size=32, q_groups=1, k_groups=1, v_groups=1, post_attention_groups=1, intermediate_groups=1, output_groups=1)
    text("mobilebert", "MobileBertConfig", "MobileBertModel", hidden_size=64, embedding_size=32, intra_bottleneck_size=32, true_hidden_size=32, intermediate_size=64)
    text("funnel", "FunnelConfig", "FunnelBaseModel", hidden_size=None, num_hidden_layers=None, num_attention_heads=None, intermediate_size=None, max_position_embeddings=None,
         d_model=32, n_head=4, d_head=8, d_inner=64, block_sizes=[1, 1])  # fmt: skip
    text("fnet", "FNetConfig", "FNetModel", inputs=("input_ids",), num_attention_heads=None)
    text("modernbert", "ModernBertConfig", "ModernBertModel", pad_token_id=0, global_attn_every_n_layers=2, local_attention=8)
    causal = {"use_cache": False}
    text("gpt2", "GPT2Config", "GPT2LMHeadModel", kwargs=causal, hidden_size=None, n_embd=32, n_layer=2, n_head=4, num_hidden_layers=None, num_attention_heads=None, intermediate_size=None)
    text("gpt_neo", "GPTNeoConfig", "GPTNeoForCausalLM", kwargs=causal, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], window_size=8, num_hidden_layers=None, num_attention_heads=None)
    text("gpt_neox", "GPTNeoXConfig", "GPTNeoXForCausalLM", kwargs=causal)
    text("gptj", "GPTJConfig", "GPTJForCausalLM", kwargs=causal, hidden_size=None, n_embd=32, n_layer=2, n_head=4, rotary_dim=4, num_hidden_layers=None, num_attention_heads=None, intermediate_size=None)
    text("opt", "OPTConfig", "OPTForCausalLM", kwargs=causal, ffn_dim=64, word_embed_proj_dim=32)
    text("bloom", "BloomConfig", "BloomForCausalLM", kwargs=causal, n_layer=2, n_head=4, num_hidden_layers=None, num_attention_heads=None)
    text("llama", "LlamaConfig", "LlamaForCausalLM", kwargs=causal, num_key_value_heads=2)
    text("mistral", "MistralConfig", "MistralForCausalLM", kwargs=causal, num_key_value_heads=2, sliding_window=8)
    text("qwen2", "Qwen2Config", "Qwen2ForCausalLM", kwargs=causal, num_key_value_heads=2)
    text("qwen3", "Qwen3Config", "Qwen3ForCausalLM", kwargs=causal, num_key_value_heads=2, head_dim=8)
    text("phi", "PhiConfig", "PhiForCausalLM", kwargs=causal)
    text("phi3", "Phi3Config", "Phi3ForCausalLM", kwargs=causal, pad_token_id=0)
    text("gemma", "GemmaConfig", "GemmaForCausalLM", kwargs=causal, num_key_value_heads=2, head_dim=8)
    text("gemma2", "Gemma2Config", "Gemma2ForCausalLM", kwargs=causal, num_key_value_heads=2, head_dim=8, sliding_window=8)
    text("olmo", "OlmoConfig", "OlmoForCausalLM", kwargs=causal, pad_token_id=0)
    text("stablelm", "StableLmConfig", "StableLmForCausalLM", kwargs=causal, num_key_value_heads=4)
    text("falcon", "FalconConfig", "FalconForCausalLM", kwargs=causal, alibi=False)
    text("mpt", "MptConfig", "MptForCausalLM", kwargs=causal, d_model=32, n_heads=4, n_layers=2, max_seq_len=64, hidden_size=None, num_hidden_layers=None, num_attention_heads=None)
    text("mixtral", "MixtralConfig", "MixtralForCausalLM", kwargs=causal, num_key_value_heads=2, num_local_experts=2)
    text("mamba", "MambaConfig", "MambaForCausalLM", inputs=("input_ids",), kwargs=causal, state_size=8, num_attention_heads=None, max_position_embeddings=None)
    text("t5", "T5Config", "T5Model", inputs=(*encoder, "decoder_input_ids"), kwargs=causal, hidden_size=None, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, num_hidden_layers=None, num_attention_heads=None)
    text("t5_encoder", "T5Config", "T5EncoderModel", hidden_size=None, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, num_hidden_layers=None, num_attention_heads=None)
    text("bart", "BartConfig", "BartModel", inputs=(*encoder, "decoder_input_ids"), kwargs=causal, hidden_size=None, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
         decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, num_hidden_layers=None, num_attention_heads=None)  # fmt: skip
    text("marian", "MarianConfig", "MarianModel", inputs=(*encoder, "decoder_input_ids"), kwargs=causal, hidden_size=None, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
         decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, num_hidden_layers=None, num_attention_heads=None, pad_token_id=1)  # fmt: skip
    text("clip_text", "CLIPTextConfig", "CLIPTextModel", eos_token_id=2)
    small = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8)
    pixels("vit", "ViTConfig", "ViTModel", **small)
    pixels("deit", "DeiTConfig", "DeiTModel", **small)
    pixels("dinov2", "Dinov2Config", "Dinov2Model", **small)
    pixels("clip_vision", "CLIPVisionConfig", "CLIPVisionModel", **small)
    pixels("siglip_vision", "SiglipVisionConfig", "SiglipVisionModel", **small)
    pixels("beit", "BeitConfig", "BeitModel", **small)
    pixels("segformer", "SegformerConfig", "SegformerForSemanticSegmentation", size=64, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=32)
    pixels("convnext", "ConvNextConfig", "ConvNextModel", size=64, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1])
    pixels("regnet", "RegNetConfig", "RegNetModel", size=64, embedding_size=16, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], groups_width=8)

    def whisper():
        import torch
        import transformers

        config = transformers.WhisperConfig(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
                                            decoder_ffn_dim=64, vocab_size=100, num_mel_bins=16, max_source_positions=20, max_target_positions=20, pad_token_id=0,
                                            bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None)  # fmt: skip
        return (transformers.WhisperModel(config), lambda b: [torch.randn(b, 16, 40), torch.randint(3, 90, (b, 5))], [{0: "batch"}, {0: "batch"}], (2, 3),
                ["input_features", "decoder_input_ids"], {"use_cache": False, "return_dict": False})  # fmt: skip

    def wav2vec2():
        import torch
        import transformers

        config = transformers.Wav2Vec2Config(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, conv_dim=(16, 16, 16), conv_kernel=(10, 3, 3),
                                             conv_stride=(5, 2, 2), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)  # fmt: skip
        return transformers.Wav2Vec2Model(config), lambda b: [torch.randn(b, 800)], [{0: "batch"}], (2, 3), ["input_values"], {"return_dict": False}

    def recurrent(kind):
        def make():
            import torch

            class Recurrent(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.embed = torch.nn.Embedding(50, 16)
                    self.cell = getattr(torch.nn, kind)(16, 24, 2, batch_first=True, bidirectional=True)
                    self.out = torch.nn.Linear(48, 5)

                def forward(self, x):
                    return self.out(self.cell(self.embed(x))[0])

            return Recurrent(), lambda b, t=6: [torch.randint(0, 50, (b, t))], [{0: "batch", 1: "sequence"}], (2, 3)

        return make

    MODELS["hf_whisper"], MODELS["hf_wav2vec2"] = whisper, wav2vec2
    for kind in ("LSTM", "GRU", "RNN"):
        MODELS["nn_" + kind.lower()] = recurrent(kind)

    def transformer():
        import torch

        module = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2, enable_nested_tensor=False)
        return module, lambda b, t=7: [torch.randn(b, t, 32)], [{0: "batch", 1: "sequence"}], (2, 3)

    MODELS["nn_transformer_encoder"] = transformer


# ---------------------------------------------------------------------------------------------------------------- export


def flat(value):
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if value is None or isinstance(value, (int, float, str, bool)):
        return []
    if isinstance(value, dict) or hasattr(value, "to_tuple"):
        value = list(value.values())
    return [t for v in value for t in flat(v)]


def build(name):
    """The model as a module of positional tensors, what draws these for a batch, their open dims, two batches, and the tensors' names where it has some."""
    import torch

    torch.manual_seed(0)
    made = MODELS[name]()
    module, draw, dims, batches = made[:4]
    names, kwargs = made[4:] if len(made) > 4 else (None, {})

    class Flat(torch.nn.Module):
        """Positional tensors in, a tuple of tensors out."""

        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, *tensors):
            out = self.inner(**dict(zip(names, tensors)), **kwargs) if names else self.inner(*tensors, **kwargs)
            return tuple(flat(out))

    module = module.eval()
    for part in module.modules():  # statistics under which activations neither vanish nor explode
        if isinstance(part, (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d)) and part.running_mean is not None:
            torch.nn.init.uniform_(part.running_mean, -0.1, 0.1)
            torch.nn.init.uniform_(part.running_var, 0.5, 1.5)
            if part.weight is not None:
                torch.nn.init.uniform_(part.weight, 0.5, 1.5)
    return Flat(module).eval(), draw, dims, batches, names


def export(folder, name):
    """Writes the archives and values of a model; returns what PyTorch itself failed at."""
    import numpy as np
    import torch

    torch.set_num_threads(1)
    wrapped, draw, dims, batches, names = build(name)
    module = wrapped.inner
    path = os.path.join(folder, name)
    os.makedirs(path, exist_ok=True)
    errors = {}
    with torch.no_grad():
        inputs = draw(batches[0])
        others = draw(batches[1], 9) if any(len(d) > 1 for d in dims) else draw(batches[1])

        def values(suffix, given):
            wanted = flat(wrapped(*given))
            try:
                wide = flat(copy.deepcopy(wrapped).double()(*[x.double() if x.is_floating_point() else x for x in given]))
                wanted = [w.to(t.dtype) for w, t in zip(wide, wanted)]
            except Exception:  # dtypes that the module fixes
                pass
            np.savez(os.path.join(path, f"inputs{suffix}.npz"), **{f"input_{i}": x.numpy() for i, x in enumerate(given)})
            np.savez(os.path.join(path, f"outputs{suffix}.npz"), **{f"output_{i}": x.contiguous().numpy() for i, x in enumerate(wanted)})

        values("", inputs)
        values("2", others)

        def dynamic(file):
            """Sequences that PyTorch itself fixes (recurrent layers) stay as they are, in the other inputs, too."""
            shapes = lambda dims: (tuple({k: torch.export.Dim.DYNAMIC for k in d} for d in dims),)
            try:
                program = torch.export.export(wrapped, tuple(inputs), dynamic_shapes=shapes(dims), strict=False)
            except torch._dynamo.exc.UserError:
                program = torch.export.export(wrapped, tuple(inputs), dynamic_shapes=shapes([{0: d[0]} for d in dims]), strict=False)
                values("2", draw(batches[1]))
            torch.export.save(program, file)

        attempts = {
            "static": lambda f: torch.export.save(torch.export.export(wrapped, tuple(inputs), strict=False), f),
            "dynamic": dynamic,
            "traced": lambda f: torch.jit.save(torch.jit.trace(wrapped, tuple(inputs), check_trace=False), f),
            "scripted": lambda f: torch.jit.save(torch.jit.script(module), f),
        }
        for form, attempt in attempts.items():
            if form == "scripted" and names:
                errors[form] = "called by keywords"
                continue
            signal.signal(signal.SIGALRM, late)
            signal.alarm(240)
            try:
                attempt(os.path.join(path, FORMS[form]))
            except (Exception, Late) as error:
                errors[form] = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"[:200]
                if os.path.exists(os.path.join(path, FORMS[form])):
                    os.remove(os.path.join(path, FORMS[form]))
            finally:
                signal.alarm(0)
    with open(os.path.join(path, "meta.json"), "w") as f:
        json.dump({"parameters": sum(p.numel() for p in module.parameters()), "errors": errors}, f)
    return errors


def late(*_):
    raise Late()


def export_job(job):
    folder, name = job
    try:
        return name, export(folder, name)
    except Exception as error:
        return name, {"all": f"{type(error).__name__}: {error}"[:300]}


# --------------------------------------------------------------------------------------------------------------- compile


def call(*command, timeout=900):
    try:
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return 6, f"{os.path.basename(command[0])} did not end within {timeout} s"
    return result.returncode, result.stderr + result.stdout


def compile_form(options, path, form):
    """{"status": right, wrong, refused or defect, "reason", "seconds"}"""
    archive, artifact = os.path.join(path, FORMS[form]), os.path.join(path, form + ".bin")
    started = time.time()
    command = [os.path.join(options.bin, "tc-compile"), archive, "-o", artifact, "--cpu", options.cpu, "--jobs", "1", "-q"]
    code, text = call(*command)
    asked = re.search(r"for instance: (--shape .*)", text)
    if code and asked:  # a scripted archive does not say what it takes, only what its inputs are called
        import numpy as np

        dtypes = {"float32": "f32", "float64": "f64", "int64": "i64", "int32": "i32", "bool": "bool"}
        given = [f"{','.join(map(str, x.shape))}:{dtypes[str(x.dtype)]}" for x in np.load(os.path.join(path, "inputs.npz")).values()]
        for name, shape in zip(re.findall(r"--shape (\S+?)=", asked.group(1)), given):
            command += ["--shape", f"{name}={shape}"]
        code, text = call(*command)
    seconds = round(time.time() - started, 1)
    if code:
        lines = [line for line in text.splitlines() if "error:" in line] or text.splitlines()[-1:] or ["no message"]
        return {"status": "refused" if code in (1, 2) else "defect", "reason": lines[0].partition("error: ")[2] or lines[0], "all": lines[:40], "seconds": seconds}
    for suffix, threads in (("", "1"), ("", "2"), *([("2", "2")] if form == "dynamic" else [])):
        code, text = call(os.path.join(options.bin, "tc-run"), artifact, "--inputs", os.path.join(path, f"inputs{suffix}.npz"), "--expect",
                          os.path.join(path, f"outputs{suffix}.npz"), "--max-rel", "2e-5", "--threads", threads, timeout=300)  # fmt: skip
        if code:
            os.remove(artifact)
            return {"status": "wrong" if code == 3 else "defect", "reason": f"inputs{suffix}, {threads} threads: " + " ".join(text.split())[-300:], "seconds": seconds}
    os.remove(artifact)
    return {"status": "right", "reason": "", "seconds": seconds}


def write_table(options, names, results, stream):
    for form in options.forms:
        mine = [(n, results[n][form]) for n in names if form in results.get(n, {})]
        counts = collections.Counter(r["status"] for _, r in mine)
        print(f"{form}: {counts['right']} of {len(mine)} right; wrong {counts['wrong']}, refused {counts['refused']}, defects {counts['defect']}", file=stream)
    for title, status in (("wrong", "wrong"), ("defects", "defect")):
        print(f"\n# {title}", file=stream)
        for n in names:
            for form, r in results.get(n, {}).items():
                if r["status"] == status:
                    print(f"{n} {form}: {r['reason']}", file=stream)
    for door in (("static", "dynamic"), ("traced", "scripted")):
        missing = collections.defaultdict(set)
        for n in names:
            for form, r in results.get(n, {}).items():
                if form in door:
                    for line in r.get("all", []):
                        missing[generalize(line)].add(n)
        print(f"\n# what {' and '.join(door)} lack: models, reason, some of them", file=stream)
        for reason, models in sorted(missing.items(), key=lambda item: -len(item[1])):
            print(f"{len(models):4} {reason}  [{' '.join(sorted(models)[:6])}]", file=stream)
    print("\n# model: form status seconds reason", file=stream)
    for n in names:
        for form, r in results.get(n, {}).items():
            print(f"{n} {form} {r['status']} {r['seconds']} {r['reason'][:160]}", file=stream)


def generalize(line):
    line = re.sub(r'node "[^"]*": ', "", line.partition("error: ")[2] or line)
    return re.sub(r"tensor<[^>]*>", "T", re.sub(r"(?<![\w.])-?\d+(\.\d+)?\b", "N", line))[:140]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--cpu", default="x86-64-v3")
    parser.add_argument("--stage", nargs="+", action="extend", choices=("export", "compile", "table"))
    parser.add_argument("--forms", nargs="+", default=list(FORMS), choices=list(FORMS))
    parser.add_argument("--filter", default="")
    parser.add_argument("--table")
    parser.add_argument("--again", action="store_true", help="compile also what was right with these tools or earlier ones")
    parser.add_argument("--jobs", type=int, default=1, help="models at a time")
    options = parser.parse_args()
    stages = options.stage or ["export", "compile", "table"]
    declare()
    names = [n for n in MODELS if re.search(options.filter, n)]
    if "export" in stages:
        todo = [(options.folder, n) for n in names if not os.path.exists(os.path.join(options.folder, n, "meta.json"))]
        with multiprocessing.Pool(options.jobs, maxtasksperchild=8) as pool:
            for name, errors in pool.imap_unordered(export_job, todo):
                print("exported", name, errors or "", flush=True)
    store = os.path.join(options.folder, "results.json")
    results = {}
    if os.path.exists(store):
        with open(store) as f:
            results = json.load(f)
    if "compile" in stages:
        stamp = os.stat(os.path.join(options.bin, "tc-compile")).st_mtime
        writing = threading.Lock()

        def compile_model(n):
            for form in options.forms:
                path, old = os.path.join(options.folder, n), results.get(n, {}).get(form)
                if not os.path.exists(os.path.join(path, FORMS[form])) or not os.path.exists(os.path.join(path, "meta.json")):
                    continue
                if old and (old.get("stamp") == stamp or old["status"] == "right") and not options.again:
                    continue
                result = compile_form(options, path, form)
                with writing:
                    results.setdefault(n, {})[form] = {**result, "stamp": stamp}
                    print(n, form, result["status"], result["seconds"], result["reason"][:120], flush=True)
                    with open(store + ".new", "w") as f:
                        json.dump(results, f)
                    os.replace(store + ".new", store)

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(compile_model, names))
    if "table" in stages:
        if options.table:
            with open(options.table, "w") as f:
                write_table(options, names, results, f)
        else:
            write_table(options, names, results, sys.stdout)


if __name__ == "__main__":
    main()
