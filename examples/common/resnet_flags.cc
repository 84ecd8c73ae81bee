#include "examples/common/resnet_flags.h"

#include <spdlog/fmt/fmt.h>

#include "examples/common/console.h"
#include "examples/common/data_source.h"
#include "examples/common/flag_groups.h"
#include "models/image_models.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

constexpr const char* kDescription =
    R"(Trains a ResNet, or another network for images, under a memory budget. The
results do not depend on the budget.

Before training, a dry run on the simulator finds how much memory the run needs without a budget
and the smallest budget that works; a smaller budget is refused.)";

constexpr const char* kExamples = R"(
Examples:
  The bundled handwritten digits in half the memory that they need:
    train_resnet --budget 50%
  The same losses without a budget (compare "loss_bits" in the two files):
    train_resnet --json free.json;  train_resnet --budget 50% --json half.json
  How much memory does ResNet-50 need at batch 256 on an A100, and how little is enough?
    train_resnet --dry-run --model resnet50 --data synthetic --batch 256 --device sim:a100-80gb
  In a process of at most 300 MiB, or in all free memory:
    train_resnet --memory 300MiB;  train_resnet --memory auto
  Offload to at most 1 GiB of host memory, then to disk, and see the timeline in ui.perfetto.dev:
    train_resnet --budget 300MiB --host-limit 1GiB --disk-limit 8GiB --trace trace.json

  Fine-tune torchvision's weights for other classes, then evaluate them:
    train_resnet --model resnet50 --data folder:DIR --load resnet50.safetensors --save tuned.safetensors
    train_resnet --model resnet50 --data folder:DIR --load tuned.safetensors --evaluate
  A run that can be killed and resumed, with the same bits:
    train_resnet --epochs 90 --checkpoint run.safetensors
    train_resnet --epochs 90 --checkpoint run.safetensors --resume
)";

void add_task_flags(CLI::App& app, ResNetFlags& flags) {
  app.option_defaults()->group("What to train");
  app.add_option("--model", flags.model, "Network to train")
      ->check(CLI::IsMember(image_model_names()));
  app.add_option(
         "--stem", flags.stem,
         "First layers: cifar (they keep the image's size) or imagenet; auto: cifar up to "
         "64 x 64 pixels. Ignored by alexnet, vgg and vit")
      ->check(CLI::IsMember({"auto", "cifar", "imagenet"}));
  app.add_option(
      "--data", flags.data,
      data_kinds() +
          ". digits are bundled; folder takes class folders of JPEG and PNG, a tenth of them "
          "held out for testing, or train/ and val/ or test/ with class folders in them");
  app.add_option(
         "--image-size", flags.image_size,
         "Height and width that images are resized to [digits 16, mnist 28, cifar10 32, "
         "others 224]")
      ->check(CLI::Range(8, 4096));
  app.add_option("--classes", flags.classes,
                 "Number of classes of synthetic data, or of a folder in a dry run [1000]")
      ->check(CLI::Range(2, 1 << 20));
  add_dtype_flag(app, flags);
  add_length_flags(app, flags, "Images per step",
                   "Passes over the training images [digits 6, synthetic 20 steps, others 1]");
}

}  // namespace

void add_flags(CLI::App& app, ResNetFlags& flags) {
  add_task_flags(app, flags);
  add_memory_flags(app, flags);
  add_optimizer_flags(app, flags,
                      {.rate = "Learning rate [sgd 0.05, adam and adamw 0.001]",
                       .schedules = {"cosine", "multistep", "constant"},
                       .schedule = "constant; cosine: falling to 0 over the run; multistep: a "
                                   "tenth of it after each third of the run",
                       .seed = "Seed of the initial weights and of the order of images"});
  add_step_flags(app, flags);
  add_file_flags(
      app, flags, "--load",
      "Start from these weights: a safetensors file with torchvision's names and "
      "layouts. The last layer keeps its initial weights if the file has other classes",
      "Write the final weights to FILE, in torchvision's format");
  add_machine_flags(app, flags);
}

std::optional<ResNetFlags> parse_resnet_flags(int argc, char** argv, int& exit_code) {
  CLI::App app(kDescription, "train_resnet");
  set_up_help(app, std::string(kExamples) + kTrainingExitCodes);
  ResNetFlags flags;
  add_flags(app, flags);
  if (!parse_or_explain(app, argc, argv, exit_code)) return std::nullopt;
  try {
    check(flags);
  } catch (const UsageError& error) {
    print_error("train_resnet: {}\n", error.what());
    exit_code = kUsageExitCode;
    return std::nullopt;
  }
  return flags;
}

}  // namespace tidemark
